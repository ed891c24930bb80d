import type { FastifyInstance } from 'fastify'
import type { TSchema } from 'typebox'
import type { Sample } from './base/sample.ts'
import type { SystemEntry } from './audit/own-entries.ts'
import type { ErrorTable } from './errors/define-errors.ts'
import type { ContinueTokens } from './lists/continue-token.ts'
import type { Database } from './store/database.ts'
import type { Clock } from './system/clock.ts'
import type { Logger } from './system/log.ts'
import type { CommandRunner } from './system/runner.ts'

/**
 * A room of the daemon, as the root takes it: what it brings and when it works. What other rooms call are verbs of its own,
 * which its factory returns beside this.
 */
export interface Room {
  /** Adds its routes; called when every room is there. */
  readonly routes?: (app: FastifyInstance) => Promise<void>
  readonly jobs?: readonly Job[]
  /** What each of its families has now, by name; asked when the metrics are read, and never in between. */
  readonly figures?: () => Figures | Promise<Figures>
  readonly checks?: readonly Check[]
  /** Before the port opens. What it throws ends the start. */
  readonly prepare?: () => Promise<void> | void
  /** After the port is open. */
  readonly start?: (port: OpenPort) => Promise<void> | void
  /** A second after the start, so that requests come first. */
  readonly background?: () => void
  /** In reverse order of the start, when no request is in flight any more. */
  readonly stop?: () => Promise<void> | void
  /** Reads files anew that an administrator may have replaced. */
  readonly reload?: () => Promise<void>
}

/** Where the daemon answers. */
export interface OpenPort {
  readonly address: string
  readonly port: number
}

/** Work that recurs. A job only calls a verb of its room. */
export interface Job {
  readonly name: string
  /** Cron expression, with seconds when it has six fields. */
  readonly schedule: string
  /** A run that takes longer than this is stuck. */
  readonly stuckAfterMs: number
  readonly run: () => Promise<void> | void
}

/** Something that has to hold. */
export interface Check {
  /** The journal calls it by this name when it does not hold. */
  readonly name: string
  /** `alive`: if it fails, a restart helps. `ready`: without it some work cannot be done. */
  readonly kind: 'alive' | 'ready'
  readonly holds: () => boolean
}

/** One value without a label, several with labels, or `undefined` for what is not known yet. */
export type Sampled = readonly Sample[] | Sample['value'] | undefined

/** A metric: what it means. Prometheus' naming rules: base units, `_total` for counters. */
export interface Family {
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly labels?: readonly string[]
}

/** What metrics have, by their names. */
export type Figures = Readonly<Record<string, Sampled>>

/** The figures that a room owes for the families it declares. */
export type FiguresOf<Families extends object> = Readonly<Record<keyof Families, Sampled>>

/** A value of the configuration that cannot be used, by the path of its key. */
export interface Finding {
  readonly path: string
  readonly message: string
}

/** Looks at what a configuration names. */
export interface ReferenceCheck {
  /** Effective value of a key by its dotted path; `undefined` where only the default is left. */
  readonly value: (path: string) => unknown
  /** To be told of a file that only root may read, where this process is not root. */
  readonly onUnseen: (file: string) => void
}

/** A reply of the API that goes into the support archive. */
export interface SupportSource {
  /** Name of its file there; a `.json` is indented. */
  readonly name: string
  readonly path: string
  /** Milliseconds; without it half a minute. */
  readonly timeoutMs?: number
  /** Names of fields whose values are masked, wherever they stand in it. */
  readonly masks?: readonly string[]
}

/** What a room gets that stands on the ground alone. */
export interface Ground<Sections = unknown> {
  /** The effective configuration, of which a room uses its own sections. */
  readonly config: Sections
  readonly stateDirectory: string
  readonly database: Database
  /** Records what the daemon does by itself. */
  readonly record: (entry: SystemEntry) => void
  readonly listTokens: ContinueTokens
  readonly runner: CommandRunner
  /** Aborted when a stop of the daemon begins. */
  readonly stopping: AbortSignal
  readonly clock: Clock
  readonly log: Logger
}

/** A section of the configuration, or how it is made from what all rooms declare. */
export type Section = TSchema | ((all: { readonly limited: readonly string[] }) => TSchema)

/**
 * What a room says of itself without being built, its `about.ts`: no input or output when it is loaded. The configuration,
 * the documents, the support program and the metrics are made from the sum of these (`declarations.ts`).
 */
export interface Declaration {
  /** Builds a room that no other one calls, and that needs the ground alone; the others are built by the root. */
  readonly create?: (ground: Ground<never>) => Promise<Room>
  readonly errors?: ErrorTable
  /** Sections of the configuration by their names. */
  readonly config?: Readonly<Record<string, Section>>
  /** Keys that only make sense together. */
  readonly pairs?: readonly (readonly [string, string])[]
  /** Judges the keys and files that its sections name, as the start does. */
  readonly checkReferencedFiles?: (check: ReferenceCheck) => Promise<readonly Finding[]>
  readonly families?: Readonly<Record<string, Family>>
  /** Tags of its routes in the API document, and what they hold. */
  readonly tags?: Readonly<Record<string, string>>
  /** Resources whose rates may be set: the first names of its paths after /v1/ or /v1/edge-mgmt/. */
  readonly limited?: readonly string[]
  readonly support?: readonly SupportSource[]
}
