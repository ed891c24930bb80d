/** The names of one of our programs, for its messages and the defaults of its paths. */
export interface ProgramNames {
  /** The daemon, its unit and its socket unit: `systemctl status <daemon>`, `<daemon>.socket`. */
  readonly daemon: string
  /** The command line beside it. */
  readonly ctl: string
  /** Its folder in /etc, /run, /var/lib and /var/cache. */
  readonly folder: string
  /** Prefix of the names of its environment variables. */
  readonly environment: string
  /** The port of its API. */
  readonly port: number
  /** Noun for the owner of its API, in messages: `journalctl` is run on it. */
  readonly noun: 'host' | 'platform'
  /** Path of the API that anyone may ask for, and that costs nothing. */
  readonly ping: string
  /** One sentence for `--help`. */
  readonly purpose: string
}

const programs = {
  edgehostd: {
    daemon: 'edgehostd',
    ctl: 'edgehostctl',
    folder: 'edgehostd',
    environment: 'EDGEHOSTD_',
    port: 5080,
    noun: 'host',
    ping: '/v1/ping',
    purpose: 'The daemon that answers the service API on an edge host.',
  },
  edgeplatformd: {
    daemon: 'edgeplatformd',
    ctl: 'edgeplatformctl',
    folder: 'edgeplatform',
    environment: 'EDGEPLATFORMD_',
    port: 443,
    noun: 'platform',
    ping: '/v1/health/ping',
    purpose: 'The platform: the daemon that edge hosts connect to, and that answers the platform API.',
  },
} as const satisfies Record<string, ProgramNames>

// Set by the build for each bundle, and by the test runner; without it the code is a part of edgehostd.
declare const __PROGRAM__: keyof typeof programs | undefined

/** The program that this code is a part of. A constant of the build, as the version is: the rooms that both programs share are one source. */
export const program: ProgramNames = programs[typeof __PROGRAM__ === 'undefined' ? 'edgehostd' : __PROGRAM__]

/**
 * Path of a document of docs/ as this program's package installs it, for a message. npm installs edgehostctl with its documents beside it.
 * @param name below docs/, for example `operations.md`
 */
export const documentPath = (name: string): string =>
  import.meta.dirname.endsWith('/node_modules/edgehostctl')
    ? `${import.meta.dirname}/docs/${name}`
    : `/usr/share/doc/${program.folder}/${name}`

/** The words of this program, in a text that both programs share. */
export const byProgram = (words: Readonly<Record<ProgramNames['noun'], string>>): string =>
  words[program.noun]

/**
 * The name of a metric in this program. Rooms that both programs share declare the names of edgehostd, so that their figures have types;
 * the names of the platform differ in the first word.
 */
export const metricName = (name: string): string => name.replace(/^edgehostd_/, `${program.daemon}_`)
