"""Run the tests marked ``attack``, file by file, each round with a new seed, until the time is up.

    python tests/attack.py SECONDS [SEED]

Rounds have the seeds SEED, SEED + 1, ..., or random ones. The seed of a round is printed before it.
A round that fails ends the attack with exit code 1; the same round again:
``HOLDTRUE_ATTACK=1 python -m pytest -q -m attack FILE --hypothesis-seed=SEED``.
"""

import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

TESTS = Path(__file__).parent
# Files, options, reports, sums, pools and models that are hostile; fits and processes cut short.
MARK = "pytest.mark.attack"
FILES = sorted(path for path in TESTS.rglob("test_*.py") if MARK in path.read_text("utf-8"))
# With these hypothesis draws the same examples in every run.
CI = ("CI", "GITHUB_ACTIONS", "GITLAB_CI")


def main(seconds: float, first_seed: int | None = None) -> int:
    end, n_rounds = time.monotonic() + seconds, 0
    kept = {name: value for name, value in os.environ.items() if name not in CI}
    while n_rounds == 0 or time.monotonic() < end:
        file = str(FILES[n_rounds % len(FILES)].relative_to(TESTS.parent))
        seed = secrets.randbelow(2**32) if first_seed is None else first_seed + n_rounds
        print(f"round {n_rounds + 1}: {file} --hypothesis-seed={seed}", flush=True)
        try:
            ended = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-m", "attack"]
                + ["-p", "no:cacheprovider", file, f"--hypothesis-seed={seed}"],
                cwd=TESTS.parent,
                env={**kept, "HOLDTRUE_ATTACK": "1"},
                timeout=max(end - time.monotonic(), 0) + 60,
                check=False,
            )
        except subprocess.TimeoutExpired:
            print("the time is up in the middle of a round")
            break
        if ended.returncode:
            return 1
        n_rounds += 1
    print(f"{n_rounds} rounds held")
    return 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), *map(int, sys.argv[2:3])))
