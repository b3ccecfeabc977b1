/* What a look at every name of a directory costs at least: walkfloor DIR ROUNDS lists each directory below DIR
   and asks for the state of each name, by as many threads as there are processors. It keeps, compares and sorts
   nothing. Prints how many names there were, and the median of the rounds. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static int *queue, queued, capacity, working;
static long names;

static void push(int fd) {
	pthread_mutex_lock(&mutex);
	if (queued == capacity)
		queue = realloc(queue, (capacity = 2 * capacity + 64) * sizeof *queue);
	queue[queued++] = fd;
	pthread_cond_signal(&more);
	pthread_mutex_unlock(&mutex);
}

static long list(int fd, char *buf, size_t size) {
	long n, found = 0;
	while ((n = syscall(SYS_getdents64, fd, buf, size)) > 0)
		for (long at = 0; at < n;) {
			struct dirent64 *d = (struct dirent64 *)(buf + at);
			struct stat st;
			at += d->d_reclen;
			if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, "..") || fstatat(fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW))
				continue;
			found++;
			if (S_ISDIR(st.st_mode)) {
				int sub = openat(fd, d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
				if (sub >= 0)
					push(sub);
			}
		}
	close(fd);
	return found;
}

static void *work(void *unused) {
	static __thread char buf[65536];
	long found = 0;
	pthread_mutex_lock(&mutex);
	for (;;) {
		while (!queued && working)
			pthread_cond_wait(&more, &mutex);
		if (!queued)
			break;
		int fd = queue[--queued];
		working++;
		pthread_mutex_unlock(&mutex);
		found += list(fd, buf, sizeof buf);
		pthread_mutex_lock(&mutex);
		working--;
	}
	names += found;
	pthread_cond_broadcast(&more);
	pthread_mutex_unlock(&mutex);
	return unused;
}

static int ascending(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv) {
	int rounds = argc > 2 ? atoi(argv[2]) : 5;
	long threads = sysconf(_SC_NPROCESSORS_ONLN);
	double *wall = calloc(rounds, sizeof *wall), *cpu = calloc(rounds, sizeof *cpu);
	if (argc < 2 || rounds < 1)
		return 64;
	for (int i = 0; i < rounds; i++) {
		struct timespec from, to, used, before;
		pthread_t helper[16];
		int helpers = 0, fd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return 66;
		names = 0;
		clock_gettime(CLOCK_MONOTONIC, &from);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
		push(fd);
		while (helpers < threads - 1 && helpers < 16 && !pthread_create(&helper[helpers], NULL, work, NULL))
			helpers++;
		work(NULL);
		while (helpers)
			pthread_join(helper[--helpers], NULL);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
		clock_gettime(CLOCK_MONOTONIC, &to);
		wall[i] = (to.tv_sec - from.tv_sec) * 1e3 + (to.tv_nsec - from.tv_nsec) / 1e6;
		cpu[i] = (used.tv_sec - before.tv_sec) * 1e3 + (used.tv_nsec - before.tv_nsec) / 1e6;
	}
	qsort(wall, rounds, sizeof *wall, ascending);
	qsort(cpu, rounds, sizeof *cpu, ascending);
	printf("%ld names: %.2f ms, of processors %.2f ms\n", names, wall[rounds / 2], cpu[rounds / 2]);
	return 0;
}
