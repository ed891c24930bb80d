// The link to a platform that user data asks for.

import { isMask } from '../base/mask.ts'
import { AppError } from '../errors/app-error.ts'
import { refusedField, refuseUnknownFields } from '../errors/refused-field.ts'
import type { HostWay } from '../outgoing/proxy.ts'
import type { Verbs } from '../verbs/call.ts'
import { configurationErrors } from './codes.ts'
import type { Management } from './schemas.ts'
import { LinkRefused, linkToPlatform } from './verbs.ts'

/** Whether and to which platform this host is linked. */
export interface PresentLink {
  readonly type: 'central' | 'local'
  readonly platformEndpoint?: string
  readonly projectName?: string
}

/** A link that is to be made. */
export interface WantedLink {
  /** As it was sent. */
  readonly url: string
  readonly token: string
  /** Empty for any: the token has one. */
  readonly projectName: string
}

const path = 'v1Management'
const fields = ['edgeHostToken', 'insecure', 'platformEndpoint', 'projectName', 'type'] as const

/**
 * Reads what a user has sent. Pure.
 * @returns undefined where the host is linked so already, or is to be managed here, as it is
 * @throws AppError BadRequest with the path
 */
export function readManagement(sent: Management | undefined, present: PresentLink): WantedLink | undefined {
  if (sent === undefined) return undefined
  refuseUnknownFields(sent, fields, `${path}.`, 'the management of a host')
  const { type, edgeHostToken = '', insecure = false, platformEndpoint = '', projectName = '' } = sent
  const refuse = (field: (typeof fields)[number], reason: string) => refusedField(`${path}.${field}`, reason)
  if (type === 'local') {
    if (present.type === 'central')
      throw refuse(
        'type',
        'cannot be applied here: this host is managed by a platform; run on the host: edgehostctl platform disconnect',
      )
    for (const [field, value] of Object.entries({ edgeHostToken, platformEndpoint, projectName }))
      if (value !== '') throw refuse(field as 'edgeHostToken', 'is only for the type central')
    if (insecure) throw refuse('insecure', 'is only for the type central')
    return undefined
  }
  if (insecure)
    throw refuse(
      'insecure',
      'cannot be: the certificate of a platform is always checked; send the authority that has signed it in network.caCerts',
    )
  const token = isMask(edgeHostToken) ? '' : edgeHostToken.trim()
  const { platformEndpoint: linked = '' } = present
  if (present.type === 'central') {
    const isSame = platformEndpoint === '' || originOf(platformEndpoint) === originOf(linked)
    if (!isSame)
      throw refuse(
        'platformEndpoint',
        `is another one: this host is linked to ${linked}; run on the host first: edgehostctl platform disconnect`,
      )
    if (token === '') {
      if (projectName !== '' && projectName !== present.projectName)
        throw refuse(
          'projectName',
          `cannot be changed here: this host is in ${present.projectName === undefined ? 'no project' : `the project ${present.projectName}`}; the platform moves it`,
        )
      return undefined
    }
  } else if (platformEndpoint === '')
    throw refuse('platformEndpoint', 'is missing: https://platform.plant.example')
  return { url: platformEndpoint || linked, token, projectName }
}

const originOf = (text: string) =>
  URL.parse(/^[a-z]+:\/\//i.test(text) ? text : `https://${text}`)?.origin ?? text

/** Makes links to a platform. */
export interface PlatformLinker {
  /** @throws AppError BadRequest with the path of what is wrong; nothing is changed */
  check(wanted: WantedLink, way: HostWay): Promise<void>
  /** Writes the settings; the next start of the daemon reads them. @throws AppError as `check` */
  write(wanted: WantedLink, way: HostWay): Promise<void>
}

export function createPlatformLinker(verbs: Verbs): PlatformLinker {
  async function run(action: 'check' | 'write', { url, token, projectName }: WantedLink, way: HostWay) {
    const server = URL.parse(/^[a-z]+:\/\//i.test(url) ? url : `https://${url}`)
    const proxy = server === null ? undefined : way.proxyFor(server.href)
    try {
      const order = { action, url, token, proxy: proxy ?? '', authorities: [...way.authorities()] }
      const record = await verbs.call(linkToPlatform, order, 'service')
      if (projectName !== '' && projectName !== record.projectName)
        throw refusedField(
          `${path}.projectName`,
          `is not the project of this token, which is ${record.projectName === '' ? 'none' : JSON.stringify(record.projectName)}; take a token of the project`,
        )
    } catch (error) {
      if (error instanceof AppError) throw error
      if (error instanceof LinkRefused)
        throw refusedField(
          `${path}.${error.isOfToken ? 'edgeHostToken' : 'platformEndpoint'}`,
          `cannot be used: ${error.message}`,
        )
      throw new AppError(
        configurationErrors.PlatformNotLinked,
        `the host could not be linked to the platform: ${(error as Error).message}`,
        { cause: error },
      )
    }
  }
  return {
    check: async (wanted, way) => run('check', wanted, way),
    write: async (wanted, way) => run('write', wanted, way),
  }
}
