/** One line of a metrics reply. */
export interface MetricLine {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** The lines of a reply in Prometheus' text format. */
export function readMetrics(text: string): MetricLine[] {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name, labels = '', value] = /^([a-z_:][a-z0-9_:]*)(?:\{(.*)\})? (\S+)$/i.exec(line) ?? []
      if (name === undefined) throw new Error(`not a line of metrics: ${line}`)
      const pairs = [...labels.matchAll(/([a-z_][a-z0-9_]*)="((?:[^"\\]|\\.)*)"/gi)]
      return {
        name,
        labels: Object.fromEntries(pairs.map(([, key, text]) => [key, text])),
        value: Number(value),
      }
    })
}

/** The value of one line; undefined when no line has these labels. */
export function valueOf(
  lines: readonly MetricLine[],
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  return lines.find(
    (line) =>
      line.name === name && Object.entries(labels).every(([key, value]) => line.labels[key] === value),
  )?.value
}
