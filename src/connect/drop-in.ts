import { Failure } from '../ctl/exit-codes.ts'

/** The settings of a connected host. */
export interface PlatformSettings {
  readonly url: string
  readonly caFile?: string
  readonly fingerprint?: string
  readonly registrationTokenFile: string
  readonly proxy?: string
}

/** The effective value of a key by its dotted path, and its source; undefined where it is not set. */
export type Effective = (path: string) => { readonly value: unknown; readonly source: string } | undefined

/** Keys that `platform connect` writes, and no other file may set. */
const keys = ['url', 'caFile', 'fingerprint', 'registrationTokenFile', 'proxy'] as const

/** The text of the drop-in. */
export function dropInText(settings: PlatformSettings): string {
  const lines = keys.flatMap((key) => {
    const value = settings[key]
    // A text of JSON is one of YAML 1.2.
    return value === undefined ? [] : [`  ${key}: ${JSON.stringify(value)}`]
  })
  return `# Written by edgehostctl platform connect, and removed by edgehostctl platform disconnect.
host:
  mode: connected
platform:
${lines.join('\n')}
`
}

/**
 * Requires that the settings take effect, whatever other files, the environment and flags set.
 * @param file the drop-in
 * @throws Failure that names each place that prevents it
 */
export function requireEffective(effective: Effective, settings: PlatformSettings, file: string): void {
  const wanted: [string, string | undefined][] = [
    ['host.mode', 'connected'],
    ...keys.map((key): [string, string | undefined] => [`platform.${key}`, settings[key]]),
  ]
  const inTheWay = wanted.flatMap(([path, value]) => {
    const found = effective(path)
    return found === undefined || found.value === value
      ? []
      : [
          `${found.source}: sets ${path}: ${String(found.value)}${value === undefined ? '' : `, which counts more than ${file}`}`,
        ]
  })
  if (inTheWay.length > 0)
    throw new Failure(
      'badConfiguration',
      `${inTheWay.join('\n')}\nRemove ${inTheWay.length === 1 ? 'this setting' : 'these settings'}, and connect again. Nothing was changed`,
    )
}

/** Places beside the drop-in that set something of the platform. */
export function placesOf(effective: Effective): {
  readonly mode: string | undefined
  readonly others: readonly string[]
} {
  const mode = effective('host.mode')
  return {
    mode: mode?.value === 'connected' ? mode.source : undefined,
    others: keys.flatMap((key) => {
      const found = effective(`platform.${key}`)
      return found ? [`${found.source} (platform.${key})`] : []
    }),
  }
}
