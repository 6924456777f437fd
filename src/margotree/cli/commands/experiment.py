"""Run experiments of the paper; every fit is saved in a file of results as soon as it is complete.

The names are those of the tables of the paper; without a name they are listed. The data sets are read from the folder
MARGOTREE_DATA or from the network; sets that are not available are left out, with a message. After Ctrl-C the file
holds the complete fits.
"""

from __future__ import annotations

import argparse

from margotree.cli import console, exit_codes, options
from margotree.cli.exit_codes import CommandError

HELP = "run experiments of the paper"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", help="tables to run, or all; without a name they are listed")
    parser.add_argument("--out", metavar="FILE", help="file for the results (results/paper.sqlite)")
    parser.add_argument("--resume", action="store_true", help="continue with the results in that file")
    parser.add_argument("--set", dest="sets", metavar="SET", action="append", help="only this data set; repeatable")
    parser.add_argument("--only", metavar="MODEL", action="append", help="only this model; repeatable")
    parser.add_argument(
        "--time-limit", type=options.seconds, metavar="T", help="time limit per fit (the limits of the paper)"
    )
    parser.add_argument(
        "--fold-time-limit",
        type=options.seconds,
        metavar="T",
        help="time limit per fit of a cross-validation (--time-limit)",
    )
    parser.add_argument("--reduced", action="store_true", help="coarse grids for the cross-validations")
    parser.add_argument(
        "--backend", default="threads", metavar="NAME", help="where fits run: threads, processes or dask (threads)"
    )
    parser.add_argument("--scheduler", metavar="ADDRESS", help="address of the Dask scheduler")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="number of simultaneous fits (1)")
    options.add_output(parser)


def run(args: argparse.Namespace) -> int:
    from margotree.paper import experiments

    if not args.names:
        known = {"tables": list(experiments.names()), "figures": list(experiments.figure_names())}
        text = "\n".join(f"{kind}: {', '.join(names)}" for kind, names in known.items())
        console.print_result(known, text, as_json=args.json)
        return exit_codes.OK
    try:
        ran = experiments.run(
            list(experiments.names()) if args.names == ["all"] else args.names,
            out=args.out or experiments.RESULTS, resume=args.resume, backend=args.backend, scheduler=args.scheduler,
            n_jobs=args.jobs, time_limit=args.time_limit, fold_time_limit=args.fold_time_limit, data=args.sets,
            only=args.only, progress=0 if args.quiet else 1, reduced=args.reduced,
        )  # fmt: skip
    except (experiments.RowsError, experiments.BackendError) as error:
        raise CommandError(str(error), exit_codes.DATA) from None
    for case, reason in ran.failed:
        console.print_status(f"failed: {case}: {reason}")
    for reason in ran.left_out():
        console.print_status(f"left out: {reason}")
    failed = [{"case": str(case), "reason": str(reason)} for case, reason in ran.failed]
    record = {"made": ran.made, "known": ran.known, "failed": failed}
    record["absent"] = {name: str(error) for name, error in ran.absent.items()}
    console.print_result(record | {"interrupted": ran.interrupted}, str(ran), as_json=args.json)
    if ran.interrupted:
        return exit_codes.INTERRUPTED
    return exit_codes.FAILED if ran.failed or ran.absent else exit_codes.OK
