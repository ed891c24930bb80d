// Entries of the journal as `journalctl --output=json` gives them (systemd.io/JOURNAL_EXPORT_FORMATS, "Journal JSON Format"). Pure.

import { masked } from '../base/mask.ts'

/** An entry of the journal. A field is text, null where it is too long, and a list of bytes where it is not printable. */
export type JournalFields = Readonly<Record<string, unknown>>

/** The text of a field; empty where it is none. */
export const textOf = (entry: JournalFields, name: string): string =>
  typeof entry[name] === 'string' ? entry[name] : ''

/** The program of edgehostd is node, so its unit names it. */
export const componentOf = (entry: JournalFields): string =>
  /^(.+)\.service$/.exec(textOf(entry, '_SYSTEMD_UNIT'))?.[1] ?? textOf(entry, 'SYSLOG_IDENTIFIER')

/** The message of an entry; of a line of edgehostd, which is JSON, its message and error. Not masked. */
export function messageOf(value: unknown): string {
  if (typeof value === 'string') return ownMessageOf(value) ?? value
  if (value === null) return '(too long to be shown here; journalctl --all shows it)'
  if (!Array.isArray(value)) return ''
  const isBytes = value.every((each) => typeof each === 'number')
  return isBytes ? Buffer.from(value).toString() : value.map(messageOf).join(' ')
}

/** Message and error of a line of edgehostd. Undefined for lines of other programs. */
function ownMessageOf(line: string): string | undefined {
  if (!line.startsWith('{"level":')) return undefined
  try {
    const { msg, err } = JSON.parse(line) as { msg?: unknown; err?: { message?: unknown } }
    return [msg, err?.message].filter((each) => typeof each === 'string').join(': ')
  } catch {
    return undefined
  }
}

/** Priorities of syslog(3), by their numbers. */
export const priorities = ['emerg', 'alert', 'crit', 'err', 'warning', 'notice', 'info', 'debug'] as const

const klog: Readonly<Record<string, number>> = { I: 6, W: 4, E: 3, F: 2 }
const logfmt: Readonly<Record<string, number>> = {
  trace: 7,
  debug: 7,
  info: 6,
  warning: 4,
  warn: 4,
  error: 3,
  fatal: 2,
  panic: 2,
}

/**
 * The priority of an entry. kubelet and containerd write to standard error, which the journal has at the level info: theirs is in the text, of
 * klog (`E0131 …`) or logfmt (`level=error`).
 */
export function priorityOf(entry: JournalFields): number {
  const text = textOf(entry, 'MESSAGE')
  const [, letter, word] = /^([IWEF])\d{4} |\blevel="?([a-z]+)/.exec(text.slice(0, 200)) ?? []
  const said = letter === undefined ? logfmt[word ?? ''] : klog[letter]
  const own = Number(textOf(entry, 'PRIORITY') || '6')
  return said ?? (own >= 0 && own <= 7 ? own : 6)
}

const beginsKey = /-----BEGIN [A-Z ]*PRIVATE KEY-----(?![\s\S]*-----END )/
const endsKey = /-----END [A-Z ]*PRIVATE KEY-----/
const isOfKey = (text: string) => /^[A-Za-z0-9+/=\s]{4,}$/.test(text)
// Of a key of RSA with 16,384 bits.
const mostLines = 220

/**
 * Masks private keys that are printed line by line, which is an entry each. Called with the entries of a source, in their order.
 * @returns a function that masks a message by the ones before it
 */
export function createKeyMask(): (source: string, message: string) => string {
  const left = new Map<string, number>()
  return (source, message) => {
    const open = left.get(source) ?? 0
    if (open > 0) {
      left.set(source, endsKey.test(message) ? 0 : open - 1)
      return masked
    }
    if (beginsKey.test(message)) left.set(source, mostLines)
    return message
  }
}

/**
 * Masks the lines of a private key whose beginning is before the first of these entries.
 * @param entries in their order
 */
export function maskCutKeys(entries: readonly { readonly source: string; message: string }[]): void {
  entries.forEach((entry, index) => {
    if (!endsKey.test(entry.message)) return
    for (let at = index - 1; at >= 0; at -= 1) {
      const before = entries[at]
      if (before?.source !== entry.source) continue
      if (!isOfKey(before.message)) return
      before.message = masked
    }
  })
}
