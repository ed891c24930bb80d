/**
 * Whether an `Accept` field prefers OpenMetrics 1.0.0 to the text format 0.0.4. Prometheus names both, with
 * weights; a client that names neither gets the text format.
 */
export function prefersOpenMetrics(accept: string | undefined): boolean {
  let openMetrics = 0
  let text = 0
  for (const part of (accept ?? '').toLowerCase().split(',')) {
    const [type, ...parameters] = part.split(';').map((each) => each.trim())
    const weight = Number(parameters.find((each) => each.startsWith('q='))?.slice(2) ?? 1) || 0
    const version = parameters.find((each) => each.startsWith('version='))?.slice(8)
    if (type === 'application/openmetrics-text' && (version === undefined || version === '1.0.0'))
      openMetrics = Math.max(openMetrics, weight)
    if (type === 'text/plain') text = Math.max(text, weight)
  }
  return openMetrics > 0 && openMetrics >= text
}
