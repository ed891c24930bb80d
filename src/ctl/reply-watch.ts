import type { ClientRequest } from 'node:http'

const lookMs = 500
/** After so long without a byte the daemon is asked whether it is there. */
export const quietMs = 5_000
/** How long it has to answer that. */
export const aliveMs = 5_000

/**
 * Ends a request whose daemon hangs: no byte has come for 5 seconds, and it has not answered a ping in 5 more. One that
 * only takes its time, as for a login or a verification of the trail, answers the ping.
 * @param isAlive whether a ping is answered within `aliveMs`
 * @param onHang told once
 */
export function watchReply(asked: ClientRequest, isAlive: () => Promise<boolean>, onHang: () => void): void {
  let seen = 0
  let quietSince = 0
  let timer: NodeJS.Timeout | undefined
  const received = () => asked.socket?.bytesRead ?? 0
  const look = async () => {
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
    timer = setTimeout(() => void look(), lookMs)
  }
  const note = () => {
    seen = received()
    quietSince = performance.now()
  }
  // Opening a connection has a limit of its own.
  asked.once('socket', () => {
    note()
    timer = setTimeout(() => void look(), lookMs)
  })
  asked.once('close', () => clearTimeout(timer))
}
