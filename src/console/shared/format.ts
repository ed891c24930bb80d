import { locale } from './text.ts'

/** The language of the page in the country of the browser: 22:48 and not 10:48 PM. */
const place = () => navigator.languages.find((each) => each.startsWith(locale.value)) ?? locale.value

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

/** For example `9.7 GiB`. */
export function bytes(value: number): string {
  const power = value < 1024 ? 0 : Math.min(Math.floor(Math.log2(value) / 10), units.length - 1)
  const shown = value / 1024 ** power
  const digits = power > 0 && shown < 10 ? 1 : 0
  return `${new Intl.NumberFormat(place(), { maximumFractionDigits: digits }).format(shown)} ${units[power] ?? ''}`
}

const date = (form: Intl.DateTimeFormatOptions) => (when: string | number) =>
  new Intl.DateTimeFormat(place(), form).format(new Date(when))

/** Hours, minutes and seconds. */
export const time = date({ hour: '2-digit', minute: '2-digit', second: '2-digit' })

/** Day, hours and minutes. */
export const day = date({ dateStyle: 'medium', timeStyle: 'short' })

export const percent = (share: number): string =>
  new Intl.NumberFormat(place(), { style: 'percent', maximumFractionDigits: 0 }).format(share)

export const count = (value: number): string => new Intl.NumberFormat(place()).format(value)

/** The two largest units of a duration: `3 d 4 h`, `48 s`. The units are those of SI, the same in every language. */
export function span(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds))
  const parts = [
    [Math.floor(whole / 86_400), 'd'],
    [Math.floor(whole / 3_600) % 24, 'h'],
    [Math.floor(whole / 60) % 60, 'min'],
    [whole % 60, 's'],
  ] as const
  const first = parts.findIndex(([value]) => value > 0)
  if (first === -1) return '0 s'
  return parts
    .slice(first, first + 2)
    .filter(([value]) => value > 0)
    .map(([value, unit]) => `${value} ${unit}`)
    .join(' ')
}

/** `WaitingForControlPlane` as `Waiting for control plane`. */
export const wordsOf = (reason: string): string =>
  reason.replace(/(?<=[a-z])[A-Z](?=[a-z])/g, (letter) => ` ${letter.toLowerCase()}`)

// Control characters but line ends and tabs, and those that turn the direction of a line around.
const hidden = /(?![\t\n\r])[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** A text of a pack, a pod or another host, with the characters shown that would change what the reader sees around them. */
export const plain = (text: string): string =>
  text.replace(hidden, (letter) => `\\u{${letter.codePointAt(0)?.toString(16) ?? ''}}`)
