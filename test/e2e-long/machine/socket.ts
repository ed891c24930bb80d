import { createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'

/** Lines from and to QEMU, which connects to a socket in the file system. */
export interface LineSocket {
  send(line: string): Promise<void>
  close(): void
}

/** Listens; lines that are sent before QEMU has connected wait. `heard` gets every line. */
export async function openSocket(path: string, heard: (line: string) => void): Promise<LineSocket> {
  const server = createServer()
  const connected = new Promise<Socket>((resolve) => server.once('connection', resolve))
  server.on('connection', (socket) => {
    // The process that started QEMU notices its end; here there are only no more lines.
    createInterface({ input: socket })
      .on('line', heard)
      .on('error', () => socket.destroy())
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, resolve)
  })
  return {
    async send(line) {
      ;(await connected).write(`${line}\n`)
    },
    close() {
      server.close()
      void connected.then((socket) => socket.destroy())
    },
  }
}
