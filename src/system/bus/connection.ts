import { connect } from 'node:net'
import { NoAnswer, BusFailed } from './failure.ts'
import {
  messageLength,
  messageTypes,
  readMessage,
  writeCall,
  type Message,
  type MethodCall,
} from './message.ts'
import type { BusValue } from './reader.ts'

/** A connection to a message bus, from the first question to the last. */
export interface Connection {
  /**
   * Calls a method.
   * @returns the values of the reply
   * @throws BusFailed when there is none within `timeoutMs`, or an error
   */
  call(method: MethodCall, timeoutMs: number): Promise<readonly BusValue[]>
  close(): void
}

const hello: MethodCall = {
  service: 'org.freedesktop.DBus',
  path: '/org/freedesktop/DBus',
  interface: 'org.freedesktop.DBus',
  member: 'Hello',
}
// The server's answer to AUTH is one short line.
const maxLineBytes = 1_024

/**
 * Connects to a bus and proves who we are, as the D-Bus Specification says under "Authentication Protocol": by the
 * credentials of the socket (EXTERNAL). Questions may be put at once; they go out when the bus knows us.
 * @param path of its Unix socket
 * @param onEnd told when no more questions can be put
 */
export function openConnection(path: string, onEnd: () => void): Connection {
  const pending = new Map<number, { readonly answer: (message: Message) => void; readonly fail: Fail }>()
  let received: Buffer = Buffer.alloc(0)
  let serial = 0
  /** What waits for the bus to know us; undefined from then on. */
  let waiting: Buffer[] | undefined = []
  let end: NoAnswer | undefined

  const send = (method: MethodCall): number => {
    serial += 1
    const bytes = writeCall(method, serial)
    if (waiting) waiting.push(bytes)
    else socket.write(bytes)
    return serial
  }
  const finish = (reason: NoAnswer) => {
    if (end) return
    end = reason
    socket.destroy()
    for (const { fail } of pending.values()) fail(reason)
    pending.clear()
    onEnd()
  }

  /** Takes the line in front; false while it is not there. */
  const takeLine = (): boolean => {
    const length = received.indexOf('\r\n')
    if (length > maxLineBytes || (length < 0 && received.length > maxLineBytes)) {
      throw new NoAnswer('malformed', 'no answer to AUTH')
    }
    if (length < 0) return false
    const line = received.toString('latin1', 0, length)
    if (!line.startsWith('OK ')) throw new NoAnswer('refused', 'the bus does not let us in')
    received = received.subarray(length + 2)
    socket.write(Buffer.concat([Buffer.from('BEGIN\r\n'), ...(waiting ?? [])]))
    waiting = undefined
    return true
  }
  /** Takes the message in front; false while it is not all there. */
  const takeMessage = (): boolean => {
    const length = messageLength(received)
    if (length === undefined || received.length < length) return false
    const message = readMessage(received.subarray(0, length))
    received = received.subarray(length)
    if (message.type === messageTypes.methodReturn || message.type === messageTypes.error) {
      pending.get(message.replySerial ?? 0)?.answer(message)
    }
    return true
  }
  const take = (chunk: Buffer) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
    try {
      while (end === undefined && (waiting ? takeLine() : takeMessage()));
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error
      finish(error)
    }
  }

  const socket = connect(path)
  socket.on('data', take)
  socket.on('error', (error: NodeJS.ErrnoException) =>
    finish(new NoAnswer('not-reached', error.code ?? error.message)),
  )
  socket.on('close', () => finish(new NoAnswer('not-reached', 'the bus has hung up')))
  socket.write(`\0AUTH EXTERNAL ${Buffer.from(String(process.geteuid?.() ?? 0)).toString('hex')}\r\n`)
  send(hello)

  return {
    async call(method, timeoutMs) {
      const { promise, resolve, reject } = Promise.withResolvers<readonly BusValue[]>()
      const fail: Fail = (reason) => reject(new BusFailed(method.service, reason))
      if (end) throw new BusFailed(method.service, end)
      const mine = send(method)
      const deadline = setTimeout(() => fail(new NoAnswer('timed-out', `${timeoutMs} ms`)), timeoutMs)
      const answer = (message: Message) => {
        try {
          const values = message.readBody()
          if (message.type === messageTypes.error) fail(refusal(message.errorName, values))
          else resolve(values)
        } catch (error) {
          if (!(error instanceof NoAnswer)) throw error
          fail(error)
        }
      }
      pending.set(mine, { answer, fail })
      try {
        return await promise
      } finally {
        clearTimeout(deadline)
        pending.delete(mine)
      }
    },
    close: () => finish(new NoAnswer('not-reached', 'closed')),
  }
}

type Fail = (reason: NoAnswer) => void

/** An error's name and, where it has one, its text: one line, whoever wrote it. */
function refusal(name: string | undefined, [text]: readonly BusValue[]): NoAnswer {
  const said = typeof text === 'string' ? `: ${text.replace(/\s+/g, ' ').slice(0, 200)}` : ''
  return new NoAnswer('refused', `${name ?? 'an error without a name'}${said}`, name)
}
