"""Run experiments and store what came out: `python -m attn_course.experiments [NAME ...]`, all of them without a name."""

import argparse
import sys
import time

import torch

from attn_course.experiments.core import all_experiments


def main(arguments: list[str] | None = None) -> int:
    """Run the named experiments for all their seeds; return the exit status."""
    known = {experiment.name: experiment for experiment in all_experiments()}
    parser = argparse.ArgumentParser(prog="python -m attn_course.experiments", description="Run experiments and store their results.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(known) or 'none yet'}; all if left out")
    parser.add_argument("--check", action="store_true", help="run nothing; say which stored results belong to an older source")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in known]:
        parser.error(f"no experiment is called {unknown[0]!r}; there are {', '.join(known)}")
    chosen = [known[name] for name in options.names or known]
    if options.check:
        problems = [problem for experiment in chosen if (problem := experiment.problem())]
        print("\n".join(problems) or f"{len(chosen)} experiments are current")
        return 1 if problems else 0
    chosen = [experiment for experiment in chosen if not experiment.needs_model or _model_is_here(experiment.name)]
    torch.set_num_threads(1)  # small models gain nothing from more, and on busy cores the threads wait for each other
    for experiment in chosen:
        start = time.monotonic()
        print(f"{experiment.name}: seeds {', '.join(map(str, experiment.seeds))} ...", flush=True)
        record = experiment.measure()
        record.save(experiment.path)
        print(f"  {time.monotonic() - start:.0f} s, written to {experiment.place}")
        for seed, result in zip(record.seeds, record.results, strict=True):
            print(f"  seed {seed}: {experiment.conclude(result)}")
    return 0


def _model_is_here(name: str) -> bool:
    from attn_course.language.getting import ModelMissing, checked, model_path

    try:
        checked(model_path())
    except ModelMissing as error:
        print(f"{name}: left out, {error}")
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
