import { computed, signal } from '@preact/signals'
import type { Event } from '../../cluster/events/schemas.ts'
import type { EdgeHostInfo } from '../../host/schemas.ts'
import type { ComponentChildren } from 'preact'
import { AdminButton, Problem, useAction } from '../shared/parts.tsx'
import { followChanges } from '../shared/changes.ts'
import { change, get } from '../shared/request.ts'
import { collectNewest } from '../shared/stream.ts'
import { textIn } from '../shared/text.ts'
import { de } from './text/de.ts'
import { en, type HostText } from './text/en.ts'

/** The texts of the pages of a host. */
export const text = textIn<HostText>({ en, de })

/** Where the API of a host begins. */
export const api = '/v1/edge-mgmt'
export const hostPath = `${api}/edgehosts/current`
export const networkPath = `${api}/network`
export const clusterPath = `${api}/cluster`

/** The same as a command on another machine. */
export const remote = (command: string): string => `edgehostctl --host ${location.host} ${command}`

const facts = signal<EdgeHostInfo | undefined>(undefined)

/** Name of this host; empty before it was read. */
export const hostName = computed(() => facts.value?.status.hostName ?? facts.value?.metadata.name ?? '')

const keptEvents = 500

/** The newest events of the cluster first, as the stream of this page tells them. */
export const events = signal<readonly Event[]>([])

/** Follows this host while its pages are used. @returns ends it */
export function followHost(): () => void {
  const end = new AbortController()
  const newest = collectNewest(events, keptEvents)
  const take = (data: string) => newest.add(JSON.parse(data) as Event)
  followChanges(`${api}/events/stream?states=true`, take, end.signal)
  return () => {
    end.abort()
    newest.end()
  }
}

/** Reads the name. @throws RequestError */
export async function readHostName(): Promise<void> {
  facts.value = await get<EdgeHostInfo>(hostPath)
}

interface DownloadProps {
  readonly path: string
  readonly kind?: 'plain' | 'primary' | 'plain small'
  readonly children: ComponentChildren
}

/** Saves a download as a file of this device: by a link with a one-time ticket, so that its bytes do not go through the memory of the page. */
export function DownloadButton({ path, kind = 'plain', children }: DownloadProps) {
  const { run, isBusy, error } = useAction(async () => {
    const { downloadPath } = await change<{ readonly downloadPath: string }>('POST', `${hostPath}/tickets`, {
      path,
    })
    const link = document.createElement('a')
    link.href = downloadPath
    link.download = ''
    link.click()
  })
  return (
    <>
      <AdminButton kind={kind} isOff={isBusy} onClick={() => void run()}>
        {children}
      </AdminButton>
      {error && <Problem error={error} />}
    </>
  )
}
