import type { SystemEntry } from '../audit/own-entries.ts'
import type { ContentRoom } from '../content/room.ts'
import type { Definitions } from '../definition/definitions.ts'
import type { DefinitionSettings } from '../definition/config.ts'
import type { HostFiles } from '../host/files.ts'
import type { Host } from '../host/room.ts'
import type { Secrets } from '../secrets/secrets.ts'
import type { Database } from '../store/database.ts'
import type { Clock } from '../system/clock.ts'
import type { ContinueTokens } from '../lists/continue-token.ts'
import type { Logger } from '../system/log.ts'
import type { CommandRunner } from '../system/runner.ts'
import type { ClusterSettings } from './config.ts'
import type { ClusterEvent } from './events/event-log.ts'

/** What the room of the cluster is made of. */
export interface ClusterOptions {
  readonly settings: ClusterSettings
  /** Limits of definitions. */
  readonly definitionSettings: DefinitionSettings
  readonly stateDirectory: string
  readonly database: Database
  /** See `LeftoverOptions`. */
  readonly completeUntil: number
  readonly secrets: Secrets
  readonly listTokens: ContinueTokens
  /** Id of this host. */
  readonly hostId: string
  readonly host: Pick<Host, 'hostName' | 'addresses' | 'nics' | 'refresh'>
  /** Called for each event of the cluster, in the transaction that stores it. */
  readonly onEvent: (event: Omit<ClusterEvent, 'id'>) => void
  readonly files: HostFiles
  readonly definition: Pick<Definitions, 'archiveOf' | 'takeFromPlatform' | 'dropFromPlatform'>
  /** What is wrong with the form of a `ClusterConfiguration` that did not come over the API; undefined for nothing. */
  readonly problemOf: (configuration: unknown) => string | undefined
  /** Writes an audit record for a change that no user made. */
  readonly record: (entry: SystemEntry) => void
  readonly content: Pick<
    ContentRoom,
    'find' | 'findChart' | 'findProgram' | 'programVersions' | 'pin' | 'renewPins' | 'unpin' | 'registry'
  >
  /** The certificate of this host, PEM. */
  readonly certificate: () => string
  /** As OCI names it. */
  readonly architecture: string
  readonly cores: number
  readonly version: string
  readonly runner: CommandRunner
  /** Runs programs outside of the sandbox of the daemon. */
  readonly privileged: CommandRunner
  /** Whether the daemon is a unit of systemd. */
  readonly asUnits: boolean
  readonly programs: { readonly step: string; readonly keeper: string; readonly prepare: string }
  /** Aborted when a stop of the daemon begins. */
  readonly stopping: AbortSignal
  readonly clock: Clock
  readonly log: Logger
}
