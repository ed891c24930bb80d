import type { ClientRequest } from 'node:http'

const checkMs = 500
/** After so long without a byte from the daemon a ping is sent. */
export const quietMs = 5_000
/** The daemon has this long to answer the ping. */
export const aliveMs = 5_000

/**
 * Detects a daemon that hangs: no byte of the reply has arrived for 5 seconds, and a ping is not answered in 5 more. A daemon
 * that only needs long for a reply, as for a login or a verification of the trail, answers the ping.
 * @param isAlive whether a ping is answered within `aliveMs`
 * @param onHang called once
 */
export function watchReply(asked: ClientRequest, isAlive: () => Promise<boolean>, onHang: () => void): void {
  let seen = 0
  let quietSince = 0
  let timer: NodeJS.Timeout | undefined
  const received = () => asked.socket?.bytesRead ?? 0
  const check = async () => {
    if (received() !== seen) note()
    else if (performance.now() - quietSince >= quietMs) {
      const answers = await isAlive()
      if (asked.closed) return
      if (!answers && received() === seen) {
        onHang()
        return
      }
      note()
    }
    timer = setTimeout(() => void check(), checkMs)
  }
  const note = () => {
    seen = received()
    quietSince = performance.now()
  }
  // Opening a connection has a limit of its own.
  asked.once('socket', () => {
    note()
    timer = setTimeout(() => void check(), checkMs)
  })
  asked.once('close', () => clearTimeout(timer))
}
