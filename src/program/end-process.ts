/**
 * Ends this process with an exit code, even if its threads are blocked. `process.exit()` waits for them: a thread that
 * hangs in a disk read or in an SQLite query would keep the process alive until systemd kills it. execve(2) ends all
 * threads at once. No code of this program runs after it, so the `exit` listeners run before.
 */
export function endProcess(exitCode: number): never {
  process.on('exit', () => {
    process.execve?.('/bin/sh', ['sh', '-c', `exit ${exitCode}`], {})
  })
  process.exit(exitCode)
}
