package integration

import "strings"

// pythonWays are those of Python, whose library does much by path after a close
// (F4 of the pains).
var pythonWays = []way{
	{"python", py(`with open(M + "/f", "w") as f: f.write(A + "\n" + B + "\n")`), "ab"},
	{"python print", py(`with open(M + "/f", "a") as f: print(A, file=f); print(B, file=f, flush=True); print(C, file=f)`), "abc"},
	{"python exclusive", py(`with open(M + "/f", "x") as f: print(A, file=f)`), "a"},
	{"python unbuffered", py(`with open(M + "/f", "wb", buffering=0) as f: f.write(A.encode()); f.write(b"\n")`), "a"},
	{"python a line at a time", py(`with open(M + "/f", "w", buffering=1) as f: f.writelines([A + "\n", B + "\n"])`), "ab"},
	{"python pathlib", py(`import pathlib; pathlib.Path(M, "f").write_text(A + "\n")`), "a"},
	{"python flush", py(`f = open(M + "/f", "w"); f.write(A + "\n"); f.flush(); os.fsync(f.fileno()); f.write(B + "\n"); f.close()`), "ab"},
	{"python never closes", py(`f = os.open(M + "/f", os.O_CREAT | os.O_WRONLY); os.write(f, (A + "\n").encode()); os._exit(0)`), "a"},
	{"python killed", `{ ` + py(`f = os.open(M + "/f", os.O_CREAT | os.O_WRONLY); os.write(f, (A + "\n").encode()); os.kill(os.getpid(), 9)`) + `; } 2> /dev/null || true`, "a"},
	{"python seeks back", py(`f = open(M + "/f", "w+"); f.write(A + "\n" + B + "\n"); f.flush(); f.seek(0); f.truncate(); f.write(C + "\n"); f.close()`), "c"},
	{"python replaces what it has promised", py(`f = open(M + "/f", "w+"); f.write(A + "\n"); f.flush(); os.fsync(f.fileno()); f.seek(0); f.write(B + "\n"); f.close()`), "b"},
	{"python writes backwards", py(`f = os.open(M + "/f", os.O_CREAT | os.O_WRONLY)
os.pwrite(f, (B + "\n").encode(), len(A) + 1)
os.pwrite(f, (A + "\n").encode(), 0)`), "ab"},
	{"python reads what it writes", py(`f = open(M + "/f", "w+"); f.write(A + "\n"); f.seek(0); g = open(M + "/g", "w"); g.write(f.read()); g.close(); f.close()`), "aa"},
	{"python dup", py(`f = os.open(M + "/f", os.O_CREAT | os.O_WRONLY); g = os.dup(f)
for d, text in (f, A), (g, B): os.write(d, (text + "\n").encode()); os.close(d)`), "ab"},
	{"python forks", py(`f = open(M + "/f", "w"); print(A, file=f, flush=True)
if os.fork() == 0: print(B, file=f, flush=True); os._exit(0)
os.wait(); print(C, file=f)`), "abc"},
	{"python runs a program", py(`import subprocess
with open(M + "/f", "w") as f: print(A, file=f, flush=True); subprocess.run(["echo", B], stdout=f, check=True); print(C, file=f)`), "abc"},
	{"python sendfile", `echo "$A" > $T/x; ` + py(`f = os.open(M + "/f", os.O_CREAT | os.O_WRONLY); os.sendfile(f, os.open(T + "/x", os.O_RDONLY), 0, 1000)`), "a"},
	{"shutil.copyfile", `echo "$A" > $T/x; ` + py(`import shutil; shutil.copyfile(T + "/x", M + "/f")`), "a"},
	{"shutil.copy", `echo "$A" > $T/x; ` + py(`import shutil; shutil.copy(T + "/x", M + "/f"); shutil.copy(T + "/x", M)`), "aa"},
	{"shutil.copy2", `echo "$A" > $T/x; ` + py(`import shutil; shutil.copy2(T + "/x", M + "/f")`), "a"},
	{"shutil.move", `echo "$A" > $T/x; ` + py(`import shutil; shutil.move(T + "/x", M + "/f"); assert not os.path.exists(T + "/x")`), "a"},
	{"shutil.copytree", `mkdir $T/d; echo "$A" > $T/d/x; ` + py(`import shutil; shutil.copytree(T + "/d", M + "/d"); os.rmdir(M + "/d")`), "a"},
	{"mkstemp and os.replace", py(`import tempfile; d, name = tempfile.mkstemp(dir=M); os.write(d, (A + "\n").encode()); os.close(d); os.replace(name, M + "/f")`), "a"},
	{"mkstemp of a temporary name", py(`import tempfile; d, name = tempfile.mkstemp(dir=M, prefix="."); os.write(d, (A + "\n").encode()); os.close(d); os.rename(name, M + "/f")`), "a"},
	{"os.replace while open", py(`import tempfile
with tempfile.NamedTemporaryFile("w", dir=M, delete=False) as f: print(A, file=f); f.flush(); os.replace(f.name, M + "/f"); print(B, file=f)`), "ab"},
	{"NamedTemporaryFile", py(`import tempfile
with tempfile.NamedTemporaryFile("w", dir=M, delete=False) as f: print(A, file=f)
os.replace(f.name, M + "/f")`), "a"},
	// Its close comes before its unlink: the message is safe by then (G1).
	{"NamedTemporaryFile that is deleted", py(`import tempfile
with tempfile.NamedTemporaryFile("w", dir=M) as f: print(A, file=f)`), "a"},
	{"TemporaryFile", py(`import tempfile
with tempfile.TemporaryFile("w+", dir=M) as f: print(A, file=f); f.seek(0); assert f.read() == A + "\n"`), ""},
	{"logging.FileHandler", pyLog(`h = logging.FileHandler(M + "/f")`), "abc"},
	{"logging.FileHandler late", pyLog(`h = logging.FileHandler(M + "/f", delay=True)`), "abc"},
	{"WatchedFileHandler", pyLog(`h = logging.handlers.WatchedFileHandler(M + "/f")`), "abc"},
	{"RotatingFileHandler", pyLog(`h = logging.handlers.RotatingFileHandler(M + "/f", maxBytes=len(A) + 5, backupCount=1)`), "abc"},
	{"descriptor by socket", py(`import socket, array
l, r = socket.socketpair()
f = os.open(M + "/f", os.O_CREAT | os.O_WRONLY)
os.write(f, (A + "\n").encode())
l.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [f]))])
os.close(f)
`), "a"},
	{"rename while open", py(`f = open(M + "/f", "w"); f.write(A + "\n"); os.rename(M + "/f", M + "/g"); g = open(M + "/g"); f.write(B + "\n"); f.close()`), "ab"},
	{"rename over", py(`f = open(M + "/f", "w"); g = open(M + "/g", "w"); f.write(A + "\n"); g.write(B + "\n"); os.rename(M + "/f", M + "/g"); f.close(); g.close()`), "ab"},
	{"unlink while open", py(`f = open(M + "/f", "w"); f.write(A + "\n"); f.flush(); os.fsync(f.fileno()); os.unlink(M + "/f"); f.write(B + "\n"); f.close()`), "a"},
	{"unlink of what is promised to nobody", py(`f = open(M + "/f", "w"); f.write(A + "\n"); f.flush(); os.unlink(M + "/f"); f.close()`), ""},
	{"threads", py(`import threading
def write(i):
    with open(M + "/f", "a") as f: print(A, file=f)
    os.chmod(M + "/f", 0o600)
threads = [threading.Thread(target=write, args=(i,)) for i in range(20)]
for t in threads: t.start()
for t in threads: t.join()`), strings.Repeat("a", 20)},
}

// py is a shell command that runs Python with the variables of the scripts.
func py(code string) string {
	return `python3 -c '
import os
A, B, C, M, T = (os.environ[k] for k in "ABCMT")
` + code + `'`
}

// pyLog logs the three records through a handler.
func pyLog(handler string) string {
	return py(`import logging, logging.handlers
` + handler + `
log = logging.getLogger(); log.addHandler(h)
for text in A, B, C: log.error("%s", text)`)
}
