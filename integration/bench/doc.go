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
// Sarracenia's own client for C, sr3_cpost, takes part in process with -cpost: it has to
// be built from its own repository. post.c does what its post costs at least.
//
// # Tried and left
//
// What did not pay, so that nobody tries it again. Quotients are to the same program
// without, medians of alternating rounds on an idle machine with 2 CPUs, for 1, 8 and 32
// writers in one directory and 32 in standing ones, if nothing else is said.
//
//   - A reader pinned to each CPU that reads for good: 0.99, 0.91, 1.17 and 0.97, CPU
//     time a file 0.96, 1.07, 0.90, 1.05. Before readers handled FLUSHes themselves it was
//     1.18, 1.16, 1.03 and 0.98. A thread that is pinned cannot let another goroutine run
//     on while it waits: that of the log is woken on the other CPU.
//   - Reads that wait in the kernel instead of epoll, two system calls less a request:
//     0.98, 1.04, 0.98 and 1.00.
//   - System calls on the connection that Go's scheduler is not told of (they do not
//     block): 1.01 and 1.03 with 1 and 32 writers.
//   - A larger group a sync, by waiting after the first FLUSH while others come: up to 2 ms
//     1.18 with 32 writers (17 files a sync instead of 2.4), but 0.31, 0.45 and 0.70 with 2, 8,
//     and 32 in standing directories. Until no request came for 10 us: 0.89, 0.87, 1.11 and 0.98
//     with 2, 8 and 32 and in standing ones. Who waits cannot tell whether others still will come.
//   - More urgent readers: nice -5 0.80, a slice of the scheduler of 0.1 ms 0.95, with 32
//     writers. Less urgent ones, which preempt nobody, do better here (nice 5 1.15, a slice of
//     6 ms 1.13), but would wait for a busy job on a compute node. Left as they are.
//   - GOGC=400 and none at all: 1.00 and 0.93 with 32 writers.
//   - More processors for Go than two besides those of the machine: 1.01 with 32 writers.
//
// # What paid
//
// Against the build before, without a broker: closes a second 1.38, 1.58, 1.13 and 1.45, CPU
// time of all processes a file 0.76, 0.74, 0.93 and 0.74.
//
//   - A reader does the close of a small file itself, and one waits for the disk for all
//     (fs/soon.go). Before, a FLUSH went through three goroutines with 3.4 futex calls a file.
//   - Edge triggered epoll: a level has it wake a second reader for each request, in vain.
//   - Two processors more for Go than the machine has, once no goroutine is handed a FLUSH:
//     1.0, 1.2 and 1.1 with 1, 8 and 32 writers. Readers in the kernel keep theirs until the
//     runtime's monitor takes it away.
//   - Zeroes ahead of what is written to the log: 1.14, 0.98 and 1.00.
//   - A worker that waits 5 ms for more messages after it got few: 1.5 and 1.1 with 1 and 32
//     writers and a broker on the same CPUs.
//
// # Where the time goes
//
// An idle machine with 2 CPUs, 32 writers in one directory, no keeper, broker away: 280 us of
// CPU a file (writers 85, daemon 80 in user mode and 115 in the kernel) at 5,300 files/s; 8
// writers 250 at 6,100; 32 in standing directories 152 at 11,300. The null file system on
// go-fuse's server takes 155 at 8,400. The kernel creates files of one directory one after
// the other, each with two round trips, so that it is the time of those that counts there, and
// 32 processes that wait for the lock cost more than 8. Of the daemon's samples 20 % are in
// writing replies, which wake writers, 12 % in reading requests (7 % waiting for them), 15 %
// in fdatasync, for 2.4 files each, 8 % in Pebble's memory table, 4 % in the records of the
// shared memory, 6 % in CREATE, 3 % in decoding, 6 % in RELEASE, some 8 % in the garbage
// collector. With a broker the publisher adds a sixth.
//
// What a file waits for mutexes, of the same load: 6.6 us, four fifths of it for the tables of
// the file system, which is little of its 6 ms; goroutines block on nothing but timers, the
// disk and the connection. It allocates 12 KB in 66 objects, of which go-fuse has 40 % for
// CREATE, WRITE and LOOKUP, and staging 39 %. System calls, counted by strace, which makes all
// slower: 5.9 writes, 5.8 reads, 0.9 waits for requests, 0.7 syncs, 1.1 looks at the process,
// and of Go's runtime 3.2 futex calls and 2.7 naps of threads that look for work.
//
// Files with fsync are no floor that a file system in user space can reach with many writers:
// the journal of ext4 syncs 32 of them at once at 15,000 files/s and more on this disk, which
// takes 0.13 ms for a sync, where the null file system has half of that and keeps nothing.
//
// To try something, build both, and name the other one with -against: it takes
// turns with the rest.
package main
