import { rmSync } from 'node:fs'
import { constants } from 'node:os'

/**
 * For a program that does one thing: told to end, it takes away what it has in hand and ends, with the exit code that a
 * shell would give it (128 and the number of the signal).
 * @returns adds a file or a folder; it need not be there
 */
export function removeOnSignal(): (path: string) => void {
  const paths = new Set<string>()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => {
      for (const path of paths) rmSync(path, { recursive: true, force: true })
      process.exit(128 + constants.signals[signal])
    })
  return (path) => void paths.add(path)
}
