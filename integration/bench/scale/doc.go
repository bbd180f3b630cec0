// Package scale has many nodes lose one broker and find it again, in virtual time: what
// a machine cannot try with real processes.
//
// The publishers are those of the program, with a queue each, and decide by themselves
// when to dial, how much to send, and when to give a connection up. Only the broker is
// a model, behind publisher.Session, and as simple as can be:
//
//   - It accepts so many connections a second, one after the other. Who has not got his
//     in 10 s (as package amqp has it) fails, and has cost as much as the others.
//   - It confirms so many messages a second, of all connections together, in the order
//     in which they come to it. Of each connection it takes no more than a credit of
//     messages at a time (as RabbitMQ's flow control does); the others wait in the
//     network. When a connection ends, what it has taken is work in vain.
//   - While it is away a connection is refused at once.
//
// All nodes have lost it at the same moment, and go on making messages at the same rate
// as before. Virtual time stands still while anybody works, so that the speed of the
// machine that simulates does not count, and a seed says all: TestScale_Deterministic.
//
// What it finds is in the README, in the section on sizing. The scenario scale of "make
// bench" runs it as a test binary, since virtual time is in tests alone. TestScale_Many
// of package integration has real programs and a real broker do the same, with fewer
// of them.
package scale
