"""A model that was chosen, with what was promised of it: saved, used on new rows, and checked."""

from holdtrue.deployed.deploy import deploy
from holdtrue.deployed.model import SavedModel, load_model
from holdtrue.deployed.promise import Promise, Verdict

__all__ = ["Promise", "SavedModel", "Verdict", "deploy", "load_model"]
