// What a technician looks at when something is wrong: logs, connections, files, and the archive for others.
import { useSignal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import type {
  CheckKind,
  ConnectivityCheck,
  FileMetadataList,
  LogEntry,
  LogsStatus,
  LogUnit,
  PingResponse,
  TraceRouteResponse,
} from '../../../diagnosis/schemas.ts'
import { bytes, day, plain, time } from '../../shared/format.ts'
import { Icon } from '../../shared/icon.tsx'
import {
  AdminButton,
  Card,
  ChangeForm,
  Choice,
  Command,
  Entry,
  Note,
  OnlyAdministrators,
  PageHeader,
  Problem,
  Shown,
  useAction,
} from '../../shared/parts.tsx'
import { Table } from '../../shared/table.tsx'
import { useFound, useReading } from '../../shared/read.ts'
import { change, get } from '../../shared/request.ts'
import { isAdmin } from '../../shared/session.ts'
import { collectNewest, follow, type StreamState } from '../../shared/stream.ts'
import { sharedText } from '../../shared/texts.ts'
import { api, DownloadButton, hostPath, remote, text } from '../host.tsx'

const units: readonly LogUnit[] = ['edgehostd', 'kubelet', 'containerd', 'kernel', 'steps']
const priorities = ['err', 'warning', 'notice', 'info', 'debug'] as const
const firstLines = 200
const keptLines = 2_000

export function Diagnosis() {
  const t = text.value.diagnosis
  return (
    <>
      <PageHeader title={t.title} />
      {isAdmin.value ? (
        <>
          <Archive />
          <Connection />
          <Logs />
          <Files />
        </>
      ) : (
        <OnlyAdministrators />
      )}
      <Command command={remote('logs -f')} />
    </>
  )
}

/** The archive is made, and then saved. */
function Archive() {
  const t = text.value.diagnosis
  const status = useReading<LogsStatus>(`${hostPath}/generate-logs-status`, 3_000)
  const make = useAction(() => change('POST', `${hostPath}/generate-logs`), status.again)
  return (
    <Card title={t.archive} icon="content">
      <Shown reading={status} lines={1}>
        {({ status: state, msg }) => (
          <div class="pad form">
            <p class="dim">{t.archiveLong}</p>
            {state !== 'Unknown' && (
              <Note mood={state === 'Failed' ? 'bad' : state === 'Completed' ? 'good' : 'info'}>
                <p role="status">{plain(msg)}</p>
                {state === 'InProgress' && <progress aria-label={t.archive} />}
              </Note>
            )}
            {make.error && <Problem error={make.error} title={sharedText.value.notDone} />}
            <div class="buttons">
              <AdminButton isOff={make.isBusy || state === 'InProgress'} onClick={() => void make.run()}>
                {state === 'Completed' ? t.makeAgain : t.make}
              </AdminButton>
              {state === 'Completed' && (
                <DownloadButton kind="primary" path={`${hostPath}/download-logs`}>
                  {t.download}
                </DownloadButton>
              )}
            </div>
          </div>
        )}
      </Shown>
    </Card>
  )
}

type Way = 'ping' | 'traceroute' | CheckKind
const ways: readonly Way[] = ['ping', 'traceroute', 'dns', 'tcp', 'tls', 'mtu', 'registry', 'platform']

/** The lines of one diagnosis, and what to do next. */
interface Found {
  readonly isGood: boolean
  readonly lines: string
  readonly next: string | undefined
}

async function diagnose(way: Way, target: string): Promise<Found> {
  const base = `${api}/edgehosts/connectivity`
  const to = encodeURIComponent(target)
  if (way === 'ping') {
    const reply = await get<PingResponse>(`${base}/ping?structured=true&endpoint=${to}`, {
      timeoutMs: 60_000,
    })
    const { isReachable = false, next } = reply.result ?? {}
    return { isGood: isReachable, lines: reply.pingHostStatus, next }
  }
  if (way === 'traceroute') {
    const reply = await get<TraceRouteResponse>(`${base}/traceroute?structured=true&endpoint=${to}`, {
      timeoutMs: 60_000,
    })
    const { isReachable = false, next } = reply.result ?? {}
    return { isGood: isReachable, lines: reply.traceRouteStatus, next }
  }
  const query = target === '' ? '' : `&target=${to}`
  const reply = await get<ConnectivityCheck>(`${base}/check?kind=${way}${query}`, { timeoutMs: 60_000 })
  const lines = reply.stages.map(
    ({ name, status, durationMs, message }) => `${name}: ${status}, ${durationMs} ms. ${message}`,
  )
  return { isGood: reply.isOk, lines: lines.join('\n'), next: reply.next }
}

function Connection() {
  const t = text.value.diagnosis
  const [way, setWay] = useState<Way>('ping')
  const [target, setTarget] = useState('')
  const [found, setFound] = useFound<Found>([way, target])
  const action = useAction(async () => setFound(await diagnose(way, target)))
  return (
    <Card title={t.connection} icon="network">
      <ChangeForm
        action={action}
        submit={action.isBusy ? t.checking : t.check}
        isOff={target === '' && way !== 'platform'}
      >
        <Choice
          label={t.way}
          value={way}
          options={ways.map((each) => [each, t.ways[each] ?? each] as const)}
          onChange={setWay}
        />
        <Entry label={t.target} value={target} onChange={setTarget} hint={t.targetLong} />
        {found && (
          <Note mood={found.isGood ? 'good' : 'bad'}>
            <strong role="status">{found.isGood ? t.reached : t.notReached}</strong>
            {found.next !== undefined && <p>{plain(found.next)}</p>}
            <pre class="lines" tabIndex={0} aria-label={t.connection}>
              {plain(found.lines)}
            </pre>
          </Note>
        )}
      </ChangeForm>
    </Card>
  )
}

/** The newest lines first, as they come. */
function useLogs(path: string) {
  const entries = useSignal<readonly LogEntry[]>([])
  const state = useSignal<StreamState>('connecting')
  useEffect(() => {
    const end = new AbortController()
    const newest = collectNewest(entries, keptLines)
    void follow(path, {
      signal: end.signal,
      onState: (now) => {
        state.value = now
      },
      onEvent: ({ data }) => newest.add(JSON.parse(data) as LogEntry),
    })
    return () => {
      end.abort()
      newest.end()
    }
  }, [path])
  return { entries: entries.value, state: state.value }
}

function Logs() {
  const t = text.value.diagnosis
  const [unit, setUnit] = useState('')
  const [priority, setPriority] = useState<string>('info')
  const query = new URLSearchParams({
    follow: 'true',
    lines: String(firstLines),
    priority,
    ...(unit === '' ? {} : { unit }),
  })
  const { entries, state } = useLogs(`${hostPath}/logs?${query.toString()}`)
  const states = text.value.cluster
  return (
    <Card
      title={t.logs}
      icon="terminal"
      aside={
        <div class="row">
          <label class="check">
            {t.unit}
            <select value={unit} onChange={(event) => setUnit(event.currentTarget.value)}>
              <option value="">{t.all}</option>
              {units.map((each) => (
                <option key={each} value={each}>
                  {each}
                </option>
              ))}
            </select>
          </label>
          <label class="check">
            {t.priority}
            <select value={priority} onChange={(event) => setPriority(event.currentTarget.value)}>
              {priorities.map((each) => (
                <option key={each} value={each}>
                  {each}
                </option>
              ))}
            </select>
          </label>
          <span class={`pulse ${state}`} role="status">
            {{ live: states.live, connecting: states.connecting, waiting: states.paused }[state]}
          </span>
        </div>
      }
    >
      {entries.length === 0 ? (
        <p class="dim pad">{state === 'live' ? t.noLines : states.connecting}</p>
      ) : (
        <ol class="events logs" tabIndex={0} aria-label={`${t.logs}, ${states.newest}`}>
          {entries.slice(0, 500).map(({ time: at, unit: from, priority: how, message, cursor }) => (
            <li key={`${cursor} ${at} ${message}`} class={moodOf(how)}>
              <time dateTime={at} title={day(at)}>
                {time(at)}
              </time>
              {moodOf(how) === 'info' ? <i class="dot" /> : <Icon name={moodOf(how)} />}
              <strong>{from}</strong>
              <code>{plain(message)}</code>
            </li>
          ))}
        </ol>
      )}
    </Card>
  )
}

const moodOf = (priority: string) =>
  ['emerg', 'alert', 'crit', 'err'].includes(priority) ? 'bad' : priority === 'warning' ? 'warning' : 'info'

/** Read when it is asked for: most hosts have none. */
function Files() {
  const t = text.value.diagnosis
  const [files, setFiles] = useState<FileMetadataList>()
  const list = useAction(async () => setFiles(await get<FileMetadataList>(`${hostPath}/file-download/files`)))
  return (
    <Card
      title={t.files}
      icon="disk"
      aside={
        <AdminButton kind="plain small" isOff={list.isBusy} onClick={() => void list.run()}>
          {t.list}
        </AdminButton>
      }
    >
      {list.error && <Problem error={list.error} />}
      {!list.error && !files && <p class="dim">{t.filesLong}</p>}
      {files?.files.length === 0 && <p class="dim">{t.noFiles}</p>}
      {files && files.files.length > 0 && (
        <Table
          title={t.files}
          items={files.files}
          keyOf={({ fileName }) => fileName}
          columns={[
            { title: t.file, cell: ({ fileName }) => plain(fileName) },
            { title: t.size, isNumber: true, cell: ({ size }) => bytes(Number(size)) },
            { title: t.changed, cell: ({ lastModifiedTimestamp }) => day(lastModifiedTimestamp) },
            {
              title: t.download,
              cell: ({ fileName }) => (
                <DownloadButton
                  kind="plain small"
                  path={`${hostPath}/file-download/${encodeURIComponent(fileName)}`}
                >
                  {t.download}
                </DownloadButton>
              ),
            },
          ]}
        />
      )}
      {files?.omitted !== undefined && <p class="dim">{t.omitted(files.omitted)}</p>}
    </Card>
  )
}
