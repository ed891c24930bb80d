import { computed, signal } from '@preact/signals'
import type { EdgeHostInfo } from '../../host/schemas.ts'
import { get } from '../shared/request.ts'
import { textIn } from '../shared/text.ts'
import { de } from './text/de.ts'
import { en, type HostText } from './text/en.ts'

/** The texts of the pages of a host. */
export const text = textIn<HostText>({ en, de })

/** Where the API of a host begins. */
export const api = '/v1/edge-mgmt'

/** The same as a command on another machine. */
export const remote = (command: string): string => `edgehostctl --host ${location.host} ${command}`

const facts = signal<EdgeHostInfo | undefined>(undefined)

/** Name of this host; empty before it was read. */
export const hostName = computed(() => facts.value?.status.hostName ?? facts.value?.metadata.name ?? '')

/** Reads the name. @throws RequestError */
export async function readHostName(): Promise<void> {
  facts.value = await get<EdgeHostInfo>(`${api}/edgehosts/current`)
}
