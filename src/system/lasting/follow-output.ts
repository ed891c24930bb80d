import type { FileHandle } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { createLineSplitter } from '../../base/lines.ts'

const pauseMs = 200
// Checking whether the keeper lives starts a program.
const checkEveryMs = 5_000

/**
 * Hands over the lines of a file that another process appends to.
 * @param hasExit whether the file `exit` exists, so that no more output follows; cheap
 * @param end how the run ended, also where its keeper died without an `exit`; undefined while it runs
 */
export async function followOutput<T>({
  output,
  since,
  onLine,
  hasExit,
  end,
  signal,
}: {
  output: FileHandle
  since: number
  onLine: (line: string, cursor: number) => void
  hasExit: () => Promise<boolean>
  end: () => Promise<T | undefined>
  signal?: AbortSignal
}): Promise<T> {
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
  for (let checkAt = 0; ;) {
    signal?.throwIfAborted()
    // Checked before the rest is read: after the end of the run no more output is written.
    const isDue = performance.now() >= checkAt
    const ended = isDue || (await hasExit()) ? await end() : undefined
    if (isDue) checkAt = performance.now() + checkEveryMs
    await readOn()
    if (ended !== undefined) {
      splitter.end()
      return ended
    }
    await delay(pauseMs, undefined, signal ? { signal } : {}).catch(() => undefined)
  }
}
