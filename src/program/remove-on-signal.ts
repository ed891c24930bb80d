import { rmSync } from 'node:fs'
import { constants } from 'node:os'

/**
 * For a program with a single task: on a signal to end, it removes its unfinished files and exits with the code that a
 * shell reports for the signal (128 plus its number).
 * @returns a function that adds a file or a folder, which need not exist
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
