"""How large a model can thirty points afford? (Chapelle, Vapnik & Bengio 2002)."""

from holdtrue.model_size.estimator import NestedRegressor

__all__ = ["NestedRegressor"]
