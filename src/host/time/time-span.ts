const second = 1_000_000
const units: ReadonlyMap<string, number> = new Map([
  ...spelled(1, 'usec us µs μs'),
  ...spelled(1_000, 'msec ms'),
  ...spelled(second, 'seconds second sec s'),
  ...spelled(60 * second, 'minutes minute min m'),
  ...spelled(3_600 * second, 'hours hour hr h'),
  ...spelled(86_400 * second, 'days day d'),
  ...spelled(604_800 * second, 'weeks week w'),
  // A twelfth of the year: 30.4375 days, which the man page rounds to 30.44.
  ...spelled(2_629_800 * second, 'months month M'),
  ...spelled(31_557_600 * second, 'years year y'),
])

/**
 * Parses a time span of systemd.time(7), for example `34min 8s` or `2048`.
 * @returns seconds; undefined for a text that is no time span, and for `infinity`
 */
export function parseTimeSpan(text: string): number | undefined {
  let rest = text.trim().replace(/^\+/, '')
  if (rest === '') return undefined
  // Added up in whole microseconds, as systemd does: fractions of seconds would not add up to a round sum.
  let microseconds = 0
  while (rest !== '') {
    const [whole, amount = '', unit = ''] =
      /^(\d+(?:\.\d+)?|\.\d+)\s*([a-z\u00b5\u03bc]*)\s*/i.exec(rest) ?? []
    const factor = unit === '' ? second : units.get(unit)
    if (whole === undefined || factor === undefined) return undefined
    microseconds += Math.round(Number(amount) * factor)
    rest = rest.slice(whole.length)
  }
  return microseconds / second
}

function spelled(microseconds: number, spellings: string): [string, number][] {
  return spellings.split(' ').map((spelling) => [spelling, microseconds])
}
