import type { FastifyInstance } from 'fastify'
import type { TSchema } from 'typebox'
import type { Role } from '../base/role.ts'
import type { Sample } from '../base/sample.ts'
import type { SystemEntry } from '../audit/own-entries.ts'
import type { ErrorTable } from '../errors/define-errors.ts'
import type { ContinueTokens } from '../lists/continue-token.ts'
import type { Secrets } from '../secrets/secrets.ts'
import type { Database } from '../store/database.ts'
import type { Reader } from '../store/reader.ts'
import type { AnonymousLog } from '../system/anonymous-log.ts'
import type { Clock } from '../system/clock.ts'
import type { Logger } from '../system/log.ts'
import type { CommandRunner } from '../system/runner.ts'

/**
 * A room of the daemon, as the composition root uses it: what it provides, and its phases. A factory may return more functions
 * with it, for other rooms to call.
 */
export interface Room {
  /** Adds its routes; called when every room is built. */
  readonly routes?: (app: FastifyInstance) => Promise<void>
  readonly jobs?: readonly Job[]
  /** Current values of its metric families, by name; called only when the metrics are read. */
  readonly figures?: () => Figures | Promise<Figures>
  readonly checks?: readonly Check[]
  /** What an operator has to know or to do about it now; called when a client asks. */
  readonly attention?: () => readonly Attention[] | Promise<readonly Attention[]>
  /** What of it a client may follow without asking again and again (`api/states.ts`). */
  readonly states?: readonly StateSource[]
  /** What it does that a stop, a reset or a change of the network of the host would break off; called when one is asked for. */
  readonly busy?: () => readonly BusyReason[]
  /** Called before the port opens. An error that it throws ends the start. */
  readonly prepare?: () => Promise<void> | void
  /** Called when the port is open. */
  readonly start?: (port: OpenPort) => Promise<void> | void
  /** Called a second after the start, so that requests come first. */
  readonly background?: () => void
  /** Called in reverse order of the start, when no request is in flight any more. */
  readonly stop?: () => Promise<void> | void
  /** Reads the files again that an administrator may have replaced. */
  readonly reload?: () => Promise<void>
}

/** Address and port on which the daemon listens. */
export interface OpenPort {
  readonly address: string
  readonly port: number
}

/** Recurring work. A job only calls a function of its room. */
export interface Job {
  readonly name: string
  /** Cron expression, with seconds when it has six fields. */
  readonly schedule: string
  /** A run that takes longer than this is stuck. */
  readonly stuckAfterMs: number
  readonly run: () => Promise<void> | void
}

/** A health check. */
export interface Check {
  /** The journal uses this name when the check fails. */
  readonly name: string
  /** `alive`: if it fails, a restart helps. `ready`: without it some work cannot be done. `note`: all work is done, and it is shown in the status. */
  readonly kind: 'alive' | 'ready' | 'note'
  readonly holds: () => boolean
}

/** Something that an operator has to know or to do; it is gone when its cause is. */
export interface Attention {
  /** Declared by its room. */
  readonly code: string
  /** `error`: something does not work. `warning`: something will not, or works in part. `info`: work goes on, or waits for the operator. */
  readonly severity: 'error' | 'warning' | 'info'
  /** One line, without secrets. */
  readonly message: string
  /** The next command on this host; absent where the message says what to do. */
  readonly command?: string
  readonly object?: { readonly kind: string; readonly name: string; readonly namespace?: string }
  /** Milliseconds since 1970; absent where it is not known. */
  readonly since?: number
}

/** A state that the stream of events tells of whenever it changes. */
export interface StateSource {
  /** Type of its messages. */
  readonly type: 'cluster' | 'step' | 'upload' | 'content' | 'host' | 'network' | 'link' | 'platform'
  /** Who gets it. */
  readonly access: Role
  /** Paths of reads that may answer otherwise when it has changed. */
  readonly paths: readonly string[]
  /**
   * The state now, a value for JSON of a few kilobytes at most, without what changes each second by itself. Read each second while a client
   * follows, so it asks no other program. Where it cannot be read, an error: the last one stays.
   */
  read(): unknown
  /** More of what the paths show, of any size: the message has its sum. The same holds as for the state. */
  behind?(): unknown
}

/** Work that goes on. */
export interface BusyReason {
  /** UpperCamelCase, stable: `ClusterStep`, `Upload`. */
  readonly reason: string
  /** One line for people, without secrets. */
  readonly message: string
  /** Uid of the work under way, where that has one. */
  readonly uid?: string
}

/** What all rooms are busy with. */
export interface Busy {
  reasons(): readonly BusyReason[]
  /**
   * Refuses an operation that would break off the work of a room, or that this work would break off.
   * @param what begins the sentence of the refusal, for example `a reboot`
   * @param concerns whether the operation minds a reason; without it, each
   * @throws AppError Busy with all reasons
   */
  refuse(what: string, concerns?: (reason: BusyReason) => boolean): void
}

/** What a reset of the host removes of a room. */
export interface ResetPart {
  /** What there is now, for people, a line each; without secrets. */
  describe(): Promise<readonly string[]>
  /** What it leaves of the same kind, a line each; without it, nothing that has to be said. */
  stays?(): Promise<readonly string[]>
  /**
   * Removes it. Idempotent: it may have been cut off, or be done already.
   * @returns false while it goes on; it is called again then
   * @throws Error with a reason for operators; it is called again then too
   */
  clear(): Promise<boolean>
}

/** One value without a label, several with labels, or `undefined` for an unknown value. */
export type Sampled = readonly Sample[] | Sample['value'] | undefined

/** Description of a metric. Names follow Prometheus: base units, `_total` for counters. */
export interface Family {
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly labels?: readonly string[]
}

/** Values of metrics, by their names. */
export type Figures = Readonly<Record<string, Sampled>>

/** The figures of a room: exactly one for each family that it declares. */
export type FiguresOf<Families extends object> = Readonly<Record<keyof Families, Sampled>>

/** A value of the configuration that cannot be used, by the path of its key. */
export interface Finding {
  readonly path: string
  readonly message: string
  /** Given where the value is good, and the file or mount that it names is not: that may be usable later. */
  readonly isOfFile?: true
}

/** The input of a check of the cryptographic keys and files that a configuration names. */
export interface ReferenceCheck {
  /** Effective value of a key by its dotted path; `undefined` where only the default applies. */
  readonly value: (path: string) => unknown
  readonly stateDirectory: string
  /** Called for a file that only root may read, where this process is not root. */
  readonly onUnseen: (file: string) => void
}

/** A reply of the API that goes into the support archive. */
export interface SupportSource {
  /** Name of its file in the archive; a `.json` file is indented. */
  readonly name: string
  readonly path: string
  /** Milliseconds; the default is half a minute. */
  readonly timeoutMs?: number
  /** Names of fields whose values are masked, at any depth. */
  readonly masks?: readonly string[]
  /** Its resource may not exist: 404 is a reply like another one. */
  readonly mayBeAbsent?: boolean
}

/**
 * The base of every room: `createX(ground, own)`, where `own` is for this room alone. The root builds it once the
 * state folder is open and the trail can be written.
 */
export interface Ground<Sections = unknown> {
  /** The effective configuration; a room names the sections that it reads. */
  readonly config: Sections
  readonly version: string
  readonly stateDirectory: string
  readonly database: Database
  /** Runs a query in another thread. */
  readonly read: Reader['read']
  readonly secrets: Secrets
  /** Adds an audit record of something that the daemon does by itself. */
  readonly record: (entry: SystemEntry) => void
  /** See `LeftoverOptions`. */
  readonly completeUntil: number
  readonly listTokens: ContinueTokens
  readonly runner: CommandRunner
  /** Aborted when a stop of the daemon begins. */
  readonly stopping: AbortSignal
  readonly clock: Clock
  readonly log: Logger
  /** Log for the lines that callers without a session cause; it bounds their number. */
  readonly anonymousLog: AnonymousLog
}

/** The schema of a section of the configuration, or a function that makes it from the declarations of all rooms. */
export type Section = TSchema | ((all: { readonly limited: readonly string[] }) => TSchema)

/**
 * Declaration of a room in its `about.ts`, which does no input or output when it is loaded. The configuration, the documents,
 * the support program and the metrics are made from the sum of all declarations (`root/declarations.ts`).
 */
export interface Declaration {
  readonly errors?: ErrorTable
  /** Sections of the configuration by their names. */
  readonly config?: Readonly<Record<string, Section>>
  /** Keys that only make sense together. */
  readonly pairs?: readonly (readonly [string, string])[]
  /** Checks the cryptographic keys, files and mounts that its sections name, as the start does. */
  readonly checkReferencedFiles?: (check: ReferenceCheck) => Promise<readonly Finding[]>
  readonly families?: Readonly<Record<string, Family>>
  /** Meanings of the codes of what an operator has to know or to do. */
  readonly attention?: Readonly<Record<string, string>>
  /** Tags of its routes in the API document, with their descriptions. */
  readonly tags?: Readonly<Record<string, string>>
  /** Resources whose rates may be set: the first names of its paths after /v1/ or /v1/edge-mgmt/. */
  readonly limited?: readonly string[]
  readonly support?: readonly SupportSource[]
}
