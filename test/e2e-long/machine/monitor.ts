import { openSocket } from './socket.ts'

/** QEMU's machine protocol, which plugs and unplugs hardware. */
export interface Monitor {
  /** Executes a command; an error of QEMU is thrown. */
  execute(command: string, args?: object): Promise<unknown>
  close(): void
}

interface Answer {
  readonly id?: number
  readonly return?: unknown
  readonly error?: { readonly desc: string }
}

/** Waits at a socket for QEMU to connect. */
export async function openMonitor(path: string): Promise<Monitor> {
  const waiting = new Map<number, (answer: Answer) => void>()
  const socket = await openSocket(path, (line) => {
    const answer = JSON.parse(line) as Answer
    // Events and the greeting have no number.
    if (answer.id === undefined) return
    waiting.get(answer.id)?.(answer)
    waiting.delete(answer.id)
  })
  let last = 0
  async function execute(command: string, args: object = {}): Promise<unknown> {
    const id = (last += 1)
    const answered = new Promise<Answer>((resolve) => waiting.set(id, resolve))
    await socket.send(JSON.stringify({ execute: command, arguments: args, id }))
    const answer = await answered
    if (answer.error) throw new Error(`${command}: ${answer.error.desc}`)
    return answer.return
  }
  // QEMU accepts no other command before this one.
  void execute('qmp_capabilities')
  return { execute, close: () => socket.close() }
}
