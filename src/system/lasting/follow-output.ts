import { watch } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { createAlarm, type Alarm } from '../../base/alarm.ts'
import { createLineSplitter } from '../../base/lines.ts'

// Between two reads of the output.
const usualPauseMs = 200
// Checking whether the keeper lives starts a program.
const checkEveryMs = 5_000

/**
 * Hands over the lines of a file that another process appends to.
 * @param exit path of the file `exit`, after which no more output follows
 * @param hasExit whether it exists; cheap
 * @param end how the run ended, also where its keeper died without an `exit`; undefined while it runs
 */
export async function followOutput<T>({
  output,
  exit,
  since,
  onLine,
  hasExit,
  end,
  signal = new AbortController().signal,
  pauseMs = usualPauseMs,
}: {
  output: FileHandle
  exit: string
  since: number
  onLine: (line: string, cursor: number) => void
  hasExit: () => Promise<boolean>
  end: () => Promise<T | undefined>
  signal?: AbortSignal
  pauseMs?: number
}): Promise<T> {
  const alarm = createAlarm(signal, 0)
  const unwatch = ringAt(exit, alarm)
  const splitter = createLineSplitter((line, readBytes) => onLine(line, since + readBytes))
  const chunk = Buffer.allocUnsafe(65_536)
  let position = since
  const readOn = async () => {
    for (;;) {
      const { bytesRead } = await output.read(chunk, 0, chunk.length, position)
      if (bytesRead === 0) return
      position += bytesRead
      splitter.add(chunk.subarray(0, bytesRead))
    }
  }
  try {
    for (let checkAt = 0; ;) {
      signal.throwIfAborted()
      // Checked before the rest is read: after the end of the run no more output is written.
      const isDue = performance.now() >= checkAt
      const ended = isDue || (await hasExit()) ? await end() : undefined
      if (isDue) checkAt = performance.now() + checkEveryMs
      await readOn()
      if (ended !== undefined) {
        splitter.end()
        return ended
      }
      await alarm.pause(pauseMs)
    }
  } finally {
    unwatch()
  }
}

/**
 * Rings when a file is put into its place. Where the kernel refuses the watch, the pauses end by themselves.
 * @returns a function that ends it
 */
function ringAt(path: string, alarm: Alarm): () => void {
  try {
    const watcher = watch(dirname(path), (_event, name) => {
      if (name === basename(path)) alarm.ring()
    })
    watcher.on('error', () => watcher.close())
    return () => watcher.close()
  } catch {
    return () => undefined
  }
}
