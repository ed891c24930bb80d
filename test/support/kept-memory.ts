import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** How many bytes more are in use after some work, without garbage; the result of the work stays in use. */
export async function keptBytes(work: () => unknown): Promise<number> {
  const used = () => {
    collect()
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }
  const before = used()
  const held = { result: await work() }
  const after = used()
  return Reflect.has(held, 'result') ? after - before : 0
}
