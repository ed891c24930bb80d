import { createConnection, type Socket } from 'node:net'

/**
 * Connects to a Unix socket.
 * @throws the system's error as it is, for example `ENOENT`; the reason of the signal
 */
export function connectSocket(path: string, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const socket = createConnection({ path })
    const abort = () => socket.destroy(signal.reason as Error)
    signal.addEventListener('abort', abort, { once: true })
    const settle = () => {
      signal.removeEventListener('abort', abort)
      socket.off('error', fail)
    }
    const fail = (error: Error) => {
      settle()
      reject(error)
    }
    socket.once('error', fail)
    socket.once('connect', () => {
      settle()
      resolve(socket)
    })
  })
}
