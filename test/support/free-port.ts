import { once } from 'node:events'
import { createServer } from 'node:net'
import { threadId } from 'node:worker_threads'

// Below the range from which the kernel takes the ports of connections: one of those may be taken again before its program listens.
const first = 12_000
const blocks = 1_000
const blockPorts = 20
// Test files run at the same time in processes or threads, which follow each other in number.
let next = first + ((process.pid + threadId) % blocks) * blockPorts

/** A port of loopback for a program that cannot be asked which one it took; no other test of this run is given the same. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = next
    next = next + 1 < first + blocks * blockPorts ? next + 1 : first
    const server = createServer()
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true))
    })
    if (!isFree) continue
    server.close()
    await once(server, 'close')
    return port
  }
}
