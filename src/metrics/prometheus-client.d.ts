// The package declares types only for its main entry; exposition.ts loads this module of it alone.
declare module '@prometheus-io/client/lib/registry.js' {
  export interface SeriesValue {
    /** Set where the name is not the metric's own, as in the parts of a histogram. */
    readonly metricName?: string
    readonly labels: Readonly<Record<string, string>>
    readonly value: number
  }
  export interface ReadMetric {
    readonly name: string
    readonly help: string
    readonly type: 'counter' | 'gauge' | 'histogram'
    readonly values: readonly SeriesValue[]
  }
  export interface RegisteredMetric {
    /** The registry removes `_total` from a counter's name where the format requires it. */
    name: string
    readonly type: ReadMetric['type']
    get(): Promise<ReadMetric>
  }
  export default class Registry {
    static readonly PROMETHEUS_CONTENT_TYPE: string
    static readonly OPENMETRICS_CONTENT_TYPE: string
    constructor(contentType: string)
    readonly contentType: string
    registerMetric(metric: RegisteredMetric): void
    metrics(): Promise<string>
  }
}
