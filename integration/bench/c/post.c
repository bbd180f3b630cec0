// post PORT EXCHANGE BYTES
//
// Posts one message straight to the broker on 127.0.0.1, as a shim does that has
// no spool: connect, log in, open a channel, ask for confirms, publish, wait for
// the confirm, close. It uses the library of Sarracenia's C client, rabbitmq-c.
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <amqp.h>
#include <amqp_tcp_socket.h>

static void good(amqp_rpc_reply_t reply, const char *what) {
	if (reply.reply_type != AMQP_RESPONSE_NORMAL)
		errx(1, "%s: refused", what);
}

static void publish(amqp_connection_state_t c, const char *exchange, int size) {
	amqp_basic_properties_t properties = {
		._flags = AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_CONTENT_TYPE_FLAG,
		.delivery_mode = 2,
		.content_type = amqp_cstring_bytes("application/json"),
	};
	amqp_bytes_t body = amqp_bytes_malloc(size);
	memset(body.bytes, 'x', size);
	if (amqp_basic_publish(c, 1, amqp_cstring_bytes(exchange), amqp_cstring_bytes("v03.run.001"), 1, 0, &properties, body))
		errx(1, "publish");
	amqp_bytes_free(body);
	amqp_frame_t frame;
	do {
		if (amqp_simple_wait_frame(c, &frame))
			errx(1, "wait for the confirm");
	} while (frame.frame_type != AMQP_FRAME_METHOD);
	if (frame.payload.method.id != AMQP_BASIC_ACK_METHOD)
		errx(1, "not confirmed");
}

int main(int argc, char **argv) {
	if (argc != 4)
		errx(64, "usage: post PORT EXCHANGE BYTES");
	amqp_connection_state_t c = amqp_new_connection();
	amqp_socket_t *socket = amqp_tcp_socket_new(c);
	if (!socket || amqp_socket_open(socket, "127.0.0.1", atoi(argv[1])))
		errx(1, "connect to port %s", argv[1]);
	good(amqp_login(c, "/", 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest"), "log in");
	amqp_channel_open(c, 1);
	good(amqp_get_rpc_reply(c), "open a channel");
	amqp_confirm_select(c, 1);
	good(amqp_get_rpc_reply(c), "ask for confirms");
	publish(c, argv[2], atoi(argv[3]));
	good(amqp_channel_close(c, 1, AMQP_REPLY_SUCCESS), "close the channel");
	good(amqp_connection_close(c, AMQP_REPLY_SUCCESS), "close the connection");
	amqp_destroy_connection(c);
	return 0;
}
