// Package shm is the memory that outlives the process which serves a mount: a
// memfd that the keeper and its workers map.
//
// # Guarantees
//
//   - M1: a process that is killed between any two stores leaves a table that
//     holds each change wholly or not at all. Proven by TestTable_CutAnywhere.
//   - M2: what is read is checked. A memory of another layout, or one that makes
//     no sense, is refused with ErrLayout or ErrDamaged and is not changed.
//     Its size cannot change. Proven by TestOpen_Refuses, TestOpenTable_Damaged
//     and TestCreate_Sealed.
//   - M3: memory that is given up goes back to the system. Proven by
//     TestTable_GivesBack.
//
// # Layout
//
// All numbers are little endian and aligned; the offsets are those of a memory
// with the default options.
//
//	0        header     one page: geometry, marks, the INIT message
//	4096     slots      128 bytes for each request that can be in hand at a time
//	 +128 Ki buffers    a page more than the largest WRITE for each slot
//	         heap       chunks of 64 KiB: records and the bytes of files, see Table
//
// The header:
//
//	0   magic        "spoolfs\0"
//	8   version      of the layout
//	16  slots        how many
//	24  buffer       size of each
//	32  heap         offset
//	40  size         of the whole
//	48  sum          of the five numbers above
//	56  epoch        counts the connections that this memory was used for
//	64  flags        1: the kernel resends requests; 2: one request at a time
//	72  committed    the last transaction that counts
//	80  nodes        how many node ids were given out
//	88  starts       counts the workers
//	96  init length
//	104 init         the INIT message, 256 bytes at most
//	360 snapshots    how many numbers of snapshots were given out
//	368 alive        when a worker was seen to work last
//	376 store        hash of the name of the store; 0 if nobody has said it
//
// A slot:
//
//	0   state        0 free, 1 being read into, 2 in hand
//	8   unique       of the request, as it came
//	16  opcode, pid  4 bytes each
//	24  began        monotonic nanoseconds
//	32  waits        how many waits for the disk it is in
//	40  length       of the request in bytes
//	48  transaction  that the outcome belongs to; 0 if there is none
//	56  for          the unique that the outcome is of, without Resent
//	64  status       of the outcome
//	72  value        of the outcome
//
// While a slot is being read into, a request may be in its buffer already: its
// length field there is not 0 then.
//
// # Why it holds
//
// Only processes die here, not the machine, so each store that was made is seen
// by the next process, and in the order in which it was made. What is one change
// to a reader is one store: the number in "committed".
package shm
