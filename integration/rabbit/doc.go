// Package rabbit runs a private RabbitMQ node, for tests and for the demo.
//
// A node has its own name, ports, epmd, cookie, configuration and data, all in
// a directory of its own under the system's temporary directory, so that any
// number of them can run beside each other and beside a system RabbitMQ. What
// it promises:
//
//  1. Start returns when clients can use the node, or with an error that has
//     the end of its log.
//  2. Stop, Kill and Start keep the data and the port.
//  3. Close leaves no process and no directory.
//  4. When this process is killed, the node goes too, and its directory with
//     the next start of any node.
//
// The package runs Debian's rabbitmq-server, as user rabbitmq when we are root.
package rabbit
