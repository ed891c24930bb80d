import { systemPath, type Ended, type RunOptions } from '../../e2e/host/process.ts'
import { openSocket } from './socket.ts'

/** A root shell of the machine on a serial port of its own: no network of the machine is needed to use it. */
export interface Shell {
  /** Runs a program; a non-zero exit is data. One after the other. */
  run(args: readonly string[], options?: RunOptions): Promise<Ended>
  close(): void
}

/** The name of the port inside the machine. */
export const shellPort = 'shell'

/**
 * The program inside the machine: each line it reads is bash, a call of `answer`. Few processes, since emulation is slow
 * at starting them. Each line it writes is number, exit code, output and errors, with tabs between and escapes as in JSON.
 */
export const shellProgram = `#!/bin/bash
export LC_ALL=C PATH=${systemPath} HOME=/root
unset LANG INVOCATION_ID JOURNAL_STREAM SYSTEMD_EXEC_PID
answer() {
  local number=$1 seconds=$2 code=0 text reply
  timeout -k 2 "$seconds" "\${@:4}" <<<"$3" >/run/shell.out 2>/run/shell.err 3>&- || code=$?
  reply="$number	$code"
  for file in /run/shell.out /run/shell.err; do
    IFS= read -r -d '' text <$file
    text=\${text//\\\\/\\\\\\\\}
    text=\${text//$'\\t'/\\\\t}
    reply+="	\${text//$'\\n'/\\\\n}"
  done
  printf '%s\\n' "$reply" >&3
}
until [[ -e /dev/virtio-ports/${shellPort} ]]; do sleep 0.2; done
exec 3<>/dev/virtio-ports/${shellPort}
while IFS= read -r -u 3 line; do eval "$line"; done
`

/** A word of bash that is this text, on one line. */
export const quote = (text: string) => {
  const escaped = text.replace(/[\\']/g, '\\$&').replaceAll('\n', '\\n')
  return `$'${escaped}'`
}

const unescape = (text = '') =>
  text.replace(/\\(.)/g, (_, letter: string) => (letter === 'n' ? '\n' : letter === 't' ? '\t' : letter))

/** Waits at a socket for the port of the machine; earlier commands wait too. */
export async function openShell(path: string): Promise<Shell> {
  const waiting = new Map<number, (answer: Ended) => void>()
  const socket = await openSocket(path, (line) => {
    const [number, code, stdout, stderr] = line.split('\t')
    waiting.get(Number(number))?.({
      exitCode: Number(code),
      stdout: unescape(stdout),
      stderr: unescape(stderr),
    })
    waiting.delete(Number(number))
  })
  let last = 0
  return {
    async run(args, { input = '', timeoutMs = 120_000, env = {} } = {}) {
      const number = (last += 1)
      const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
      const program = variables.length === 0 ? args : ['env', ...variables, ...args]
      const answered = new Promise<Ended>((resolve) => waiting.set(number, resolve))
      const words = [input, ...program].map(quote).join(' ')
      await socket.send(`answer ${number} ${Math.ceil(timeoutMs / 1_000)} ${words}`)
      const ended = await answered
      // The exit code of timeout(1).
      if (ended.exitCode === 124) throw new Error(`${args.join(' ')}: longer than ${timeoutMs} ms`)
      return ended
    },
    close: () => socket.close(),
  }
}
