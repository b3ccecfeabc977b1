/* The floor of the benchmark: the least a wrapper can do. Built static. */
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
	int status;
	pid_t pid;
	if (argc < 2)
		return 64;
	pid = vfork();
	if (pid == 0) {
		execv(argv[1], argv + 1);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 70;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}
