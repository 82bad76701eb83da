"""The emulator beside Triton's interpreter and Numba's simulator: same kernels, sizes, run.

    python3 compare.py --emulator BINARY --folder PREPARED [--rounds N] [--quick] [--json FILE]

BINARY is the bench `launches` of assay-emulator; PREPARED is what prepare.py wrote. Each of the
three is a process of its own that stays; they take turns round by round, so that whatever else the
machine does meets all of them. Every run's result is checked against numpy in float64. Medians are
compared; the spread is (highest - lowest) / median.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

import numpy as np

import cases

HERE = pathlib.Path(__file__).parent


class Server:
    """A process that takes a case's name a line and answers with a line."""

    def __init__(self, *command):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=HERE)

    def ask(self, line):
        """The numbers of the answer; none when the process is gone."""
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return []
        return [float(word) for word in self.process.stdout.readline().split()]

    def close(self):
        self.process.communicate()


def worst_error(case, folder, number):
    data = (folder / f"case{number}.out").read_bytes()
    kind = case.arguments[case.output].dtype
    found = np.frombuffer(data, dtype=kind).reshape(case.expected.shape)
    return float(np.abs(found.astype(np.float64) - case.expected).max())


def write_inputs(case, folder, number):
    for position, argument in enumerate(case.arguments):
        if isinstance(argument, np.ndarray):
            (folder / f"case{number}.{position}.bin").write_bytes(argument.tobytes())


def summary(times):
    middle = statistics.median(times)
    return {"median_ms": middle, "spread": (max(times) - min(times)) / middle, "runs": len(times)}


def compare(case, number, folder, emulators, peer, rounds):
    times = {name: [] for name in [*emulators, case.peer] if name}
    operations = 0
    for _ in range(rounds):
        answer = peer.ask(case.name) if peer else []
        if peer and not answer:
            print(f"SKIPPED {case.peer}: it gives no answer (see its message above)")
            peer = None
        if answer:
            spent, error = answer
            times[case.peer].append(spent)
            assert error <= case.tolerance, f"{case.name}: {case.peer} is off by {error}"
        for name, server in emulators.items():
            # The first of several short runs warms caches that the peer has filled.
            answers = [server.ask(f"case{number}") for _ in range(3)]
            times[name].extend(answer[0] for answer in answers[1:])
            operations = answers[0][1]
            error = worst_error(case, folder, number)
            assert error <= case.tolerance, f"{case.name}: emulator is off by {error}"
    row = {"case": case.name, "peer": case.peer if peer else None, "lane_operations": operations}
    times = {name: values for name, values in times.items() if values}
    row |= {name: summary(values) for name, values in times.items()}
    for name in emulators:
        if peer:
            row[name]["ratio"] = row[case.peer]["median_ms"] / row[name]["median_ms"]
        row[name]["lane_operations_per_ns"] = operations / row[name]["median_ms"] / 1e6
    return row


def show(row, emulators):
    print(row["case"])
    if row["peer"]:
        peer = row[row["peer"]]
        print(f"    {row['peer']}: {peer['median_ms']:.1f} ms (n={peer['runs']}, "
              f"spread {100 * peer['spread']:.0f} %)")
    for name in emulators:
        mine = row[name]
        ratio = f"{mine['ratio']:.1f} times as fast, " if row["peer"] else ""
        print(f"    emulator, {name}: {mine['median_ms']:.2f} ms (n={mine['runs']}, spread "
              f"{100 * mine['spread']:.0f} %), {ratio}"
              f"{mine['lane_operations_per_ns']:.2f} G lane-operations/s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--emulator", required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="without the 40 s of 16x16x16 tiles")
    parser.add_argument("--only", default="", help="cases whose names hold this")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    folder, binary = options.folder.resolve(), os.path.abspath(options.emulator)
    emulators = {
        f"{workers} core{'s' if workers > 1 else ''}": Server(binary, str(folder), str(workers))
        for workers in sorted({1, cores})
    }
    peers = {
        "triton": Server(sys.executable, str(HERE / "triton_server.py")),
        "numba": Server(sys.executable, str(HERE / "numba_server.py")),
    }
    print(f"{cores} cores; peers run as they come (numpy may use all of them)")
    rows = []
    for number, case in enumerate(cases.all_cases()):
        skipped = options.quick and "16x16x16" in case.name
        if skipped or options.only not in case.name or not (folder / f"case{number}.ptx").exists():
            continue
        write_inputs(case, folder, number)
        peer = peers.get(case.peer)
        rows.append(compare(case, number, folder, emulators, peer, options.rounds))
        show(rows[-1], emulators)
        if options.json:
            options.json.write_text(json.dumps({"cores": cores, "rows": rows}, indent=1) + "\n")
    for server in [*emulators.values(), *peers.values()]:
        server.close()


if __name__ == "__main__":
    main()
