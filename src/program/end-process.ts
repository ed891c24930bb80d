/**
 * Ends this process with an exit code, whatever its threads wait for. `process.exit()` alone joins them: one that hangs in a
 * read of a disk, or in a query of SQLite, would hold the process until systemd kills it. execve(2) ends all of them at
 * once; nothing of this program is run after it, so the listeners of `exit` have their turn before.
 */
export function endProcess(exitCode: number): never {
  process.on('exit', () => {
    process.execve?.('/bin/sh', ['sh', '-c', `exit ${exitCode}`], {})
  })
  process.exit(exitCode)
}
