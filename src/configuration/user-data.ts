// User data: what a host is given once before it has a cluster. Its own state is small (`user-data-store.ts`): each other part of it is a thing that another
// part of the daemon has, and is applied there at once. What cannot be applied is refused with its path; nothing is dropped.

import { createLock } from '../base/lock.ts'
import { isMask, masked } from '../base/mask.ts'
import { uuidAt } from '../base/uid.ts'
import { AppError } from '../errors/app-error.ts'
import { generalErrors } from '../errors/codes.ts'
import { refusedField, refuseRounded, refuseUnknownFields } from '../errors/refused-field.ts'
import type { Clock } from '../system/clock.ts'
import { configurationErrors } from './codes.ts'
import type { Configuration } from './configuration.ts'
import type { LinksByName, RequestOfLinks } from '../network/user-data.ts'
import { readManagement, type PlatformLinker, type PresentLink } from './platform-link.ts'
import { readRegistryCredentials, shownCredentials } from './registry-credentials.ts'
import type { CloudInit, UserData } from './schemas.ts'
import type { StagesStatus, StageStep } from './stage-steps.ts'
import type { KeptUserData, UserDataStore } from './user-data-store.ts'

export interface UserDataOptions {
  readonly store: UserDataStore
  readonly configuration: Pick<Configuration, 'show' | 'plan' | 'put' | 'way' | 'wayWith'>
  readonly links: LinksByName
  readonly hasCluster: () => boolean
  readonly hostName: () => string
  /** The name of the host: its rules, and another one, at once. */
  readonly host: {
    problemOfName(name: string): string | undefined
    /** @throws AppError */
    setName(name: string): Promise<void>
  }
  readonly platform: () => PresentLink
  readonly linker: PlatformLinker
  /** Whether root's configuration lets administrators send commands of root. */
  readonly takesStages: boolean
  readonly clock: Pick<Clock, 'now'>
}

/** User data of this host. */
export interface UserDataPart {
  show(): Promise<UserData>
  /**
   * Applies it at once.
   * @param isNew refuses where there is some already
   * @returns the uid, that of the trial of links where one has begun, and whether the daemon has to be started anew for a link to a platform
   * @throws AppError UserDataAfterCluster, UserDataExists, BadRequest; errors of the parts
   */
  apply(
    body: CloudInit,
    isNew: boolean,
    how: RequestOfLinks,
  ): Promise<{ readonly uid: string; readonly change?: string; readonly needsRestart: boolean }>
}

const longestTags = 65_536
const known = {
  root: ['hostName', 'network', 'registryCredentials', 'stages', 'tags', 'v1Management'],
  network: ['caCerts', 'httpProxy', 'httpsProxy', 'interfaces', 'noProxy'],
} as const

export function createUserData(options: UserDataOptions): UserDataPart {
  const { store, configuration, links, hasCluster, hostName, host, platform, linker, takesStages, clock } =
    options

  /** What one request has judged is not to be changed by another. */
  const inTurn = createLock()

  /** The steps of stages that are new; undefined where they stay as they are. */
  async function newStages(
    sent: string,
    kept: KeptUserData | undefined,
  ): Promise<readonly StageStep[] | undefined> {
    if (sent.trim() === '' || (isMask(sent) && kept?.stages !== undefined)) return undefined
    if (!takesStages)
      throw refusedField(
        'stages',
        'are commands of root, which this host takes only where its configuration file has userData.stages: true; set that as root, restart edgehostd, and send them again',
      )
    // It loads a parser of YAML, which no start of the daemon needs.
    const { readStages } = await import('./stages.ts')
    const steps = readStages(sent)
    if (kept?.stages?.state === 'waiting' || kept?.stages?.state === 'running')
      throw new AppError(configurationErrors.StagesUnderWay, 'stages of this host are still being run')
    return steps
  }

  return {
    async show() {
      const kept = store.current()
      const registryCredentials = shownCredentials(kept?.registry)
      const interfaces = await links.show()
      const open = links.open()
      return {
        hostName: hostName(),
        network: { ...configuration.show(), interfaces: { ...interfaces } },
        ...(registryCredentials === undefined ? {} : { registryCredentials }),
        ...(kept?.stages === undefined ? {} : { stages: masked, stagesStatus: shownStages(kept.stages) }),
        tags: kept?.tags ?? {},
        v1Management: { ...platform() },
        ...(open === undefined ? {} : { networkChange: { ...open } }),
      }
    },

    apply: (body, isNew, how) => inTurn(() => apply(body, isNew, how)),
  }

  function refuseWithCluster(): void {
    if (hasCluster())
      throw new AppError(
        configurationErrors.UserDataAfterCluster,
        'this host has a cluster: user data is for a host without one',
      )
  }

  async function apply(
    ...[body, isNew, how]: Parameters<UserDataPart['apply']>
  ): ReturnType<UserDataPart['apply']> {
    refuseWithCluster()
    const kept = store.current()
    if (isNew && kept !== undefined)
      throw new AppError(
        configurationErrors.UserDataExists,
        'this host has user data already; PUT replaces it',
      )
    refuseUnknownFields(body, known.root, '', 'user data')
    const { network, stages = '', tags = kept?.tags ?? {}, registryCredentials } = body
    const wantedLink = readManagement(body.v1Management, platform())
    const { hostName: named = '' } = body
    const isRenamed = named !== '' && named !== hostName()
    const problem = isRenamed ? host.problemOfName(named) : undefined
    if (problem !== undefined) throw refusedField('hostName', `${JSON.stringify(named)} ${problem}`)
    if (network !== undefined) refuseUnknownFields(network, known.network, 'network.', 'user data')
    refuseRounded(tags, 'tags')
    if (JSON.stringify(tags).length > longestTags)
      throw refusedField('tags', `are longer than ${longestTags} characters`)
    const registry =
      registryCredentials === undefined
        ? kept?.registry
        : readRegistryCredentials(registryCredentials, kept?.registry, clock.now())
    const steps = await newStages(stages, kept)
    const { interfaces = {}, ...proxies }: NonNullable<CloudInit['network']> = network ?? {}
    if (network !== undefined) await withPath(() => configuration.plan(proxies))
    const begin = await links.judge(interfaces, how)
    const way = wantedLink && network !== undefined ? await configuration.wayWith(proxies) : configuration.way
    if (wantedLink) await linker.check(wantedLink, way)
    // The checks have taken their time.
    refuseWithCluster()
    // Everything has been judged.
    if (isRenamed) await host.setName(named)
    if (network !== undefined) await withPath(() => configuration.put(proxies))
    const uid = uuidAt(clock.now())
    // Stages may have begun or ended meanwhile.
    const present = store.current()
    store.put({
      uid,
      tags,
      registry,
      steps: steps ?? present?.steps,
      stages: steps ? { state: 'waiting', message: '', at: clock.now() } : present?.stages,
    })
    if (wantedLink) await linker.write(wantedLink, way)
    // Last: the host may soon have another address, and the reply has to leave before.
    const change = await begin?.().catch((error: unknown) => {
      if (!(error instanceof AppError)) throw error
      const { kind, message, details } = error
      throw new AppError(kind, `${message}; the rest of the user data is applied`, {
        cause: error,
        ...(details === undefined ? {} : { details }),
      })
    })
    return { uid, ...(change === undefined ? {} : { change }), needsRestart: wantedLink !== undefined }
  }
}

const shownStages = ({ state, message, at }: StagesStatus) => ({
  state,
  ...(message === '' ? {} : { message }),
  since: new Date(at).toISOString(),
})

/** The refusal of a field of the configuration, with its path in user data. */
async function withPath<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const field = error instanceof AppError ? error.details?.field : undefined
    if (!(error instanceof AppError) || error.kind !== generalErrors.BadRequest || typeof field !== 'string')
      throw error
    throw refusedField(`network.${field}`, error.message.slice(field.length + 1))
  }
}
