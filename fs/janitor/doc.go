// Package janitor empties plain directories into the queue: directories of retry
// files on a shared file system, and the bare directory below a mount. It needs
// no FUSE. Users may write to these directories, and other janitors may be at work
// in them, on this host or on others.
//
//	scan ─▶ settled? ─▶ open ─▶ claim ─▶ read ─▶ store ─▶ check ─▶ remove
//	        age, clock   lease   rename   decode  synced   on the descriptor
//
// # Guarantees
//
//   - J1: a file is removed only when all its messages are on stable storage. A
//     crash at any step costs a repeat with the same message ids at most, never a
//     message. Proven by TestJanitor_EveryStep and TestJanitors_Killed.
//   - J2: nothing is taken before it is finished: not while somebody has it open
//     for writing, where the kernel can tell that, and not before it has not
//     changed for Options.Age. Proven by TestJanitor_Open, TestJanitor_Grows,
//     TestJanitor_YoungInClaim, TestSettler_Jumps and TestJanitors_Killed.
//   - J3: any number of janitors may work in one directory. Message ids are made
//     of the name and the content of a file, so that two that take the same file
//     give it the same ones. Proven by TestJanitors_Killed and
//     TestJanitor_TakesOver, and by TestJanitors_UnsureServer where the file server
//     gives wrong answers.
//   - J4: a user who can write to the directory can have nobody else's file
//     published, removed or read, whatever he puts there: symbolic links, hard
//     links, FIFOs, names that change at the wrong moment. Messages are credited
//     to the owner of the file. Proven by TestJanitor_Hostile,
//     TestJanitor_Swaps, TestJanitor_DirectoryReplaced and
//     TestJanitor_PlantedClaim.
//   - J5: nothing is stranded: what a janitor that is gone has claimed is taken
//     over, after Options.ClaimTimeout, or at once by one of the same store.
//     Proven by TestJanitor_TakesOver and TestJanitors_UnsureServer.
//   - J6: no clock needs to be right. Ages are those of the file server, leases
//     are judged by a clock that does not jump; a jump costs waiting time only.
//     Proven by TestSettler_Jumps and TestJanitor_HeldAndJumps.
//   - J7: memory does not grow with the directory. Proven by TestListing_Bounded
//     and BenchmarkJanitor_Directory.
//
// # Claims
//
// A janitor makes a directory .spoolfs-claim.<store>.<random>, mode 01700, and moves
// files into it before it reads them. So the move is one that only one janitor can
// do, the file keeps the name of which its ids are made, and nobody can put another
// file in its place. The directory's mtime is its lease. The sticky bit marks it: a
// user who gives its name to another private directory of ours cannot set that.
//
// What has come into a claim in the place of a file at the last moment is put back,
// and is treated as a file of its own. An answer ENOENT or ESTALE is no verdict: a
// network file system may have done before what it is asked for again, so the
// other name is looked for.
//
// # What is left alone
//
// Files with several names (a hard link may be to somebody else's file), what is no
// regular file, files with temporary names (they wait for their rename, a day at
// most), and empty files that are young.
package janitor
