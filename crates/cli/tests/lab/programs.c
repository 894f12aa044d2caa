/* A program of the lab's tests: what it does is its first argument. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT = 4242, CALLS = 1000, REQUESTS = 20 };

static char block[1 << 16];

static int failed(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	return 1;
}

static struct sockaddr_in address(const char *host, int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	inet_pton(AF_INET, host, &to.sin_addr);
	return to;
}

/* A known amount of work: a million passes of a loop, a thousand system calls. */
static int work(void)
{
	volatile long sum = 0;
	for (long i = 0; i < 1000000; i++)
		sum += i;
	for (int i = 0; i < CALLS; i++)
		getppid();
	printf("sum %ld\n", sum);
	return 0;
}

/* Answers each connection with a line, for ever. */
static int serve(void)
{
	struct sockaddr_in own = address("127.0.0.1", PORT);
	int listening = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listening, (void *)&own, sizeof own) || listen(listening, 8))
		return failed("listen");
	for (;;) {
		int client = accept(listening, NULL, NULL);
		if (write(client, "hello\n", 6) < 0)
			puts("a client has left");
		close(client);
	}
}

/* Connects to a server, and reads its lines. */
static int ask(const char *host, int port, int times)
{
	struct sockaddr_in to = address(host, port);
	long bytes = 0;
	for (int i = 0; i < times; i++) {
		int server = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(server, (void *)&to, sizeof to))
			return failed("connect");
		for (long more; (more = read(server, block, sizeof block)) > 0;)
			bytes += more;
		close(server);
	}
	printf("read %ld bytes\n", bytes);
	return 0;
}

static int fill_disk(void)
{
	int file = open("/tmp/big", O_WRONLY | O_CREAT, 0600);
	while (write(file, block, sizeof block) > 0)
		;
	return failed("write");
}

int main(int count, char **words)
{
	const char *what = count > 1 ? words[1] : "work";
	printf("to do: %s\n", what);
	fflush(stdout);
	if (!strcmp(what, "work"))
		return work();
	if (!strcmp(what, "serve"))
		return serve();
	if (!strcmp(what, "ask"))
		return ask("127.0.0.1", PORT, REQUESTS);
	if (!strcmp(what, "network"))
		return ask("192.0.2.1", 80, 1);
	if (!strcmp(what, "crash"))
		raise(SIGSEGV);
	if (!strcmp(what, "wait"))
		for (;;)
			pause();
	if (!strcmp(what, "bomb"))
		for (;;)
			fork();
	if (!strcmp(what, "memory"))
		for (;;)
			memset(malloc(sizeof block), 1, sizeof block);
	if (!strcmp(what, "output"))
		for (;;)
			if (write(1, block, sizeof block) < 0)
				return 1;
	if (!strcmp(what, "disk"))
		return fill_disk();
	return 7;
}
