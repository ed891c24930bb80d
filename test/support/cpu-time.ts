/** Milliseconds of processor that this thread has taken so far: what else the machine does counts little. */
export function cpuNow(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}
