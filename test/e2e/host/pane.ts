import { eventually } from './eventually.ts'
import type { Host } from './host.ts'

/** A terminal of a host, drawn by tmux. */
export interface Pane {
  /** Types text as it is, then keys by their tmux names. */
  type(text: string, ...keys: readonly string[]): Promise<void>
  /** The text on it, without spaces at the end of lines and empty lines at its end. */
  text(): Promise<string>
  /** The text with the lines that the terminal broke joined again. */
  unbroken(): Promise<string>
  /** The text with the escape sequences of colours. */
  coloured(): Promise<string>
  /** Waits until it shows a text. */
  until(shown: RegExp): Promise<string>
  close(): Promise<void>
}

/** Opens a terminal with a bash, as root. */
export async function openPane(host: Host, columns: number, lines = 50): Promise<Pane> {
  const name = `pane${columns}x${Math.random().toString(36).slice(2, 8)}`
  const tmux = (...args: readonly string[]) => host.output(['tmux', '-L', name, ...args])
  await host.output(
    [
      ...['tmux', '-f', '/dev/null', '-L', name, 'new-session', '-d', '-s', 'it', '-x', String(columns)],
      ...['-y', String(lines), 'env', 'PS1=$ ', 'bash', '--norc', '--noprofile'],
    ],
    { env: { TERM: 'xterm-256color', LC_ALL: 'C.UTF-8' } },
  )
  const capture = async (...more: readonly string[]) =>
    (await tmux('capture-pane', '-p', '-t', 'it', ...more)).replaceAll(/ +$/gm, '').replace(/\n+$/, '')
  const pane: Pane = {
    async type(text, ...keys) {
      if (text !== '') await tmux('send-keys', '-t', 'it', '-l', text)
      for (const key of keys) await tmux('send-keys', '-t', 'it', key)
    },
    text: () => capture(),
    unbroken: () => capture('-J'),
    coloured: () => capture('-e'),
    until: (shown) =>
      eventually(async () => {
        const text = await capture()
        if (!shown.test(text)) throw new Error(`the terminal does not show ${shown.source}:\n${text}`)
        return text
      }),
    async close() {
      await tmux('kill-server')
    },
  }
  await pane.until(/\$/)
  return pane
}
