# Writes files as a short-lived python program does: open, write, close.
# Arguments: directory, number of this writer, first file, number of files.
# Prints the seconds that each file took.
import os, socket, sys, time

directory, writer, first, count = sys.argv[1], *map(int, sys.argv[2:])
prefix = f"{directory}/post_retry.{socket.gethostname()}.{os.getpid()}."
seconds = []
print("ready", flush=True)
sys.stdin.read()  # until the demo lets all writers go at once
for n in range(first, first + count):
    line = ('{"pubTime": "20261130T070000.000", "baseUrl": "http://node.example.org", '
            f'"relPath": "run/{writer:03d}/f{n:05d}.grib2", "size": "1"}}\n')
    start = time.perf_counter()
    with open(f"{prefix}{n}", "w") as f:
        f.write(line)
    seconds.append(time.perf_counter() - start)
print(*seconds)
