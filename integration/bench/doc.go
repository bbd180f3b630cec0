// Bench measures spoolfs against what a site would use instead, and against the
// floors that the kernel, the disk and the broker set: "make bench", as root.
//
// It builds all of them, has them take turns in the same run (A B C, B C A, ...),
// and writes medians and quotients as a table, as JSON and as charts. What it
// promises:
//
//  1. Each contestant is a program of its own, started anew for each turn, and
//     writers are processes, in C, so that they cost as little as can be.
//  2. A quotient is that of two contestants in the same turn; the table has the
//     median of all turns, the least and the most. Absolute numbers hold for one
//     machine and one hour.
//  3. It leaves nothing but its results, also after an error or Ctrl-C.
//
// # Scenarios
//
//   - close: 1, 8 and 32 writers, each a process, write files of 420 bytes, with
//     the broker away. spoolfs is measured with and without a keeper, in one
//     directory and spread over standing directories.
//   - end: 32 writers, and the time until the broker has confirmed the last
//     message. Queues of the broker keep the last 1,000 messages, so that it has
//     the same to do for all. CPU time is that of all processes but the broker.
//   - process: a new process for each message, which writes a file or posts to the
//     broker (with rabbitmq-c, the library of Sarracenia's C client), behind a
//     relay that makes a round trip take 1 or 20 ms. Times are from fork to exit.
//   - outage: a backlog of one message a file, what it costs to look at, the start
//     with it, and the drain, against drains of 10,000 before and after.
//   - scale: many nodes that lose one broker for an hour, simulated with the real
//     publishers (package scale), with the defaults and other settings; and the rate at
//     which a real broker accepts connections, and the memory of one.
//
// # Floors and alternatives
//
// A null file system on go-fuse's stock server and one on libfuse keep nothing:
// create, write, flush and release cost five requests as with spoolfs (LOOKUP
// among them). A third one is on a loop such as ours and puts what was written
// into Pebble, synced, with the options of the queue and nothing else. The bare
// client of the broker has the same window as spoolfs. Plain files are in one
// directory on the same disk, with and without fsync, and a loop posts and
// removes them. The directories of plain files are not removed before the end of
// the run: just after many removals ext4 makes files at a tenth of the rate.
//
// Sarracenia's own client is not among them: it has to be built from its own
// repository, and what it costs a process is its post, which post.c does.
//
// # Tried and left
//
// What did not pay, so that nobody tries it again:
//
//   - More processors for Go (GOMAXPROCS 4 and 6 on 2 CPUs), since readers that
//     wait in the kernel keep theirs until the runtime's monitor takes it away,
//     which is an eighth of the CPU time of the daemon: 327 to 335 us of CPU a file
//     with 4 against 328 to 350 with 2 in one directory, 223 to 247 against 222 to
//     282 in standing ones, 32 writers, three turns at a load of 30 to 40.
//   - A thread pinned to each CPU of the affinity mask that is a reader for good (the
//     read that does not block, and epoll; those that stand in for one that waits are
//     not pinned). Twelve turns of close at a load of 10 to 48, medians of the quotient
//     to the same program without: closes a second 0.96, 1.00 and 1.26 with 1, 8 and 32
//     writers in one directory, 1.17, 1.25 and 1.14 in standing ones, CPU time of the
//     daemon a file 1.32, 1.08, 0.97 and 1.32, 1.13, 1.11. With two processors more for
//     Go: 1.26, 1.47, 1.26 and 1.01, 1.47, 1.02, for 1.20, 1.13, 0.97 and 1.09, 1.16,
//     1.23 of the CPU time. Quotients of one turn are from 0.34 to 3.35, so that the
//     gain in rate is not told from how much of a busy machine a pinned thread gets,
//     and CPU time, which is too high already, grows in nearly all turns. On an idle
//     machine, five to seven turns, with the two processors more: closes a second 1.18
//     (1.13 to 1.36), 1.16 (1.09 to 1.18) and 1.03 (0.97 to 1.04) with 1, 8 and 32
//     writers in one directory and 0.98 (0.81 to 1.09) with 32 in standing ones, CPU
//     time of all processes a file 0.88, 1.05, 1.14 and 1.12. So it pays for few
//     writers and costs with many; it is left out until it costs nothing.
//   - System calls on the connection that Go's scheduler is not told of (they do not
//     block): 1.01 and 1.03 (0.93 to 1.09) with 1 and 32 writers on an idle machine.
//
// Where the time goes, on an idle machine with 2 CPUs, 32 writers in one directory, no
// keeper, broker away: 305 us of CPU a file (writers 84, daemon 98 in user mode and 123
// in the kernel) at 4,717 files/s, where the null file system on go-fuse's server takes
// 153 at 8,400 and that on our loop with a put 213 at 6,400. So CPU, not the disk, is
// the limit (2 CPUs are 6,600 files/s at 305 us). Of the daemon's samples on a busy
// machine 19 % are in writing replies and 18 % in reading requests (10 % waiting for
// them), 14 % in staging at the FLUSH (4 % decoding, 5 % Pebble's memtable), 6 % in
// fdatasync, 6 % in the RELEASE, 5 % in the record of the shared memory, 5 % in
// pidfd_open and close, which tell the process of a CREATE, 6 % in allocating. A FLUSH
// goes through three goroutines (reader, job, the one that may hang on the disk), with
// 3.4 futex calls a file. That is where to look next.
//
// To try something, build both, and name the other one with -against: it takes
// turns with the rest.
package main
