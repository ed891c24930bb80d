import { maskShapes } from '../../base/mask.ts'
import type { Event } from './schemas.ts'
import { AppError } from '../../errors/app-error.ts'
import { generalErrors } from '../../errors/codes.ts'
import { componentOf, messageOf, textOf, type JournalFields } from '../../host/journal.ts'
import type { Clock } from '../../system/clock.ts'
import { CommandFailed, type CommandRunner } from '../../system/runner.ts'

/**
 * Parses entries of the journal, `journalctl --output=json` (systemd.io/JOURNAL_EXPORT_FORMATS, "Journal JSON Format"). Text that looks
 * like a secret is masked, and values that `hide` knows: kubelet and containerd write them.
 */
function parseJournalErrors(text: string, hide: (text: string) => string): Event[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => eventOf(JSON.parse(line) as JournalFields, hide))
}

function eventOf(entry: JournalFields, hide: (text: string) => string): Event {
  const field = (name: string) => textOf(entry, name)
  const host = field('_HOSTNAME')
  const cursor = field('__CURSOR')
  return {
    metadata: {
      uid: cursor,
      name: cursor,
      number: 0,
      creationTimestamp: new Date(Number(field('__REALTIME_TIMESTAMP')) / 1_000).toISOString(),
    },
    // Lines of systemd about a unit name it in UNIT.
    involvedObject: { kind: 'Unit', name: field('UNIT') || field('_SYSTEMD_UNIT') },
    reason: 'LogError',
    message: maskShapes(hide(messageOf(entry.MESSAGE))),
    severity: 'Error',
    source: { component: componentOf(entry), ...(host && { host }) },
  }
}

/** Errors in the journal. */
export interface ErrorLogs {
  /**
   * The last errors of edgehostd, kubelet and containerd, the newest first.
   * @throws AppError NotReady when the journal cannot be read
   */
  last(count: number): Promise<readonly Event[]>
}

const fields = 'MESSAGE,UNIT,_SYSTEMD_UNIT,SYSLOG_IDENTIFIER,_HOSTNAME'
const lasting = ['edgehostd', 'containerd']
// Of one cluster only.
const ofCluster = ['kubelet', 'edgehostd-containerd']
// kubelet and containerd write to standard error, which the journal has at the level info: errors are known by their text. kubelet writes
// lines of klog, containerd logfmt; the last alternatives are lines of systemd about a failed unit.
const errorLine = '^[EF][0-9]{4} |level="?(error|fatal|panic)|Failed with result|Failed to start'
// A search of the whole journal would take minutes where there are few errors.
const longestMs = 7 * 86_400_000
const readMs = 10_000
// journalctl leaves out texts of more than 4 KiB.
const outputBytes = 16_777_216

interface ErrorLogsOptions {
  readonly runner: CommandRunner
  /** Masks the sensitive values of the cluster, which the kubelet and containerd may quote. */
  readonly hide: () => (text: string) => string
  /**
   * Time since which lines of the kubelet and of the cluster's containerd are of the cluster that `hide` knows; 0 for all. The values of a
   * deleted cluster are not stored, so its lines stay in the journal.
   */
  readonly clusterSince: () => number
  readonly clock: Pick<Clock, 'now'>
}

/** Reads the journal by journalctl, which the sandbox of the daemon allows. */
export function createErrorLogs({ runner, hide, clusterSince, clock }: ErrorLogsOptions): ErrorLogs {
  async function read(units: readonly string[], count: number, how: string, sinceMs = 0): Promise<Event[]> {
    // Rounded up: lines of a cluster until its end are left out.
    const since = Math.ceil(Math.max(clock.now() - longestMs, sinceMs) / 1_000)
    const { exitCode, stdout, stderr } = await runner.run(
      'journalctl',
      [
        ...['--quiet', '--no-pager', '--output=json', `--output-fields=${fields}`, `--since=@${since}`],
        ...[`--lines=${count}`, how, ...units.map((unit) => `--unit=${unit}`)],
      ],
      { timeoutMs: readMs, maxOutputBytes: outputBytes, niceness: 10 },
    )
    // With --grep it is 1 where no line matches.
    const problem = stderr.trim().split('\n')[0] ?? ''
    if (exitCode !== 0 && problem !== '') throw unreadable(problem)
    return parseJournalErrors(stdout, hide())
  }

  return {
    async last(count) {
      try {
        const found = await Promise.all([
          read(['edgehostd'], count, '--priority=err'),
          read(lasting, count, `--grep=${errorLine}`),
          read(ofCluster, count, `--grep=${errorLine}`, clusterSince()),
        ])
        // An entry may be in two.
        const entries = new Map(found.flat().map((event) => [event.metadata.uid, event]))
        return [...entries.values()].sort((one, two) => timeOf(two) - timeOf(one)).slice(0, count)
      } catch (error) {
        if (error instanceof CommandFailed) throw unreadable(error.message)
        throw error
      }
    },
  }
}

const timeOf = ({ metadata }: Event) => Date.parse(metadata.creationTimestamp)

const unreadable = (why: string) =>
  new AppError(generalErrors.NotReady, `the journal could not be read: ${why}; see journalctl -u edgehostd`)
