import { Type, type Static } from 'typebox'
import { Uid } from '../base/uid.ts'

const time = (description: string) => Type.String({ format: 'date-time', description })
const text = (description: string) => Type.String({ description })

/** What a stop does. */
export type StopAction = 'reboot' | 'shutdown'

/** Longest time until a planned stop, days. */
export const mostDaysAhead = 7

/** The query of a stop. Another name is refused: with `dryrun` or `AT` the host would go at once. */
export const StopQuery = Type.Object(
  {
    force: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Also while the host is busy, and against locks that delay or refuse its stop.',
      }),
    ),
    at: Type.Optional(
      Type.String({
        format: 'date-time',
        description: `When, within ${mostDaysAhead} days, RFC 3339; absent: at once.`,
      }),
    ),
    message: Type.Optional(
      Type.String({
        maxLength: 200,
        // One line without control characters: users at terminals and the journal get it.
        pattern: '^[^\\p{C}\\p{Zl}\\p{Zp}]*$',
        accepts: 'one line of at most 200 characters, without control characters',
        description: 'The reason, for the journal, users at terminals, events and the audit trail.',
      }),
    ),
  },
  { additionalProperties: false },
)
export type StopQuery = Static<typeof StopQuery>

export const StopAccepted = Type.Object(
  { message: text('What happens now.'), uid: text('Of the stop.') },
  { title: 'StopAccepted' },
)
export type StopAccepted = Static<typeof StopAccepted>

const Stop = Type.Object({
  uid: Type.String(),
  action: Type.Enum(['reboot', 'shutdown']),
  state: Type.Enum(['planned', 'going', 'done', 'failed'], {
    description:
      'planned: it waits for its time. going: the host is about to go. done: it went. failed: it was not done; reason says why.',
  }),
  message: text('The reason that was given; empty where there was none.'),
  reason: Type.Optional(text('Why it was not done, or what a planned one whose time has come waits for.')),
  isForced: Type.Boolean(),
  by: text('The user.'),
  creationTimestamp: time('When it was asked for.'),
  atTimestamp: Type.Optional(time('The time it is planned for; absent where it was to go at once.')),
})

/** The reply of `GET /v1/edge-mgmt/edgehosts/current/actions`. */
export const HostActions = Type.Object(
  {
    items: Type.Array(Stop, { description: 'The stop that is planned, or under way; empty without one.' }),
    last: Type.Optional(Stop),
    reset: Type.Optional(
      Type.Object(
        {
          uid: Type.String(),
          by: text('The user.'),
          creationTimestamp: time('When it was asked for.'),
          phase: Type.Optional(text('The phase that it is in; absent once it is done.')),
          reason: Type.Optional(text('Why the phase does not get on; it is tried again.')),
          endTimestamp: Type.Optional(time('When it was done.')),
        },
        { description: 'The last reset of this host.' },
      ),
    ),
    boot: Type.Optional(
      Type.Object(
        {
          startTimestamp: time('The first start of edgehostd in this boot.'),
          message: text('How the host came back, for people.'),
          isOrderly: Type.Boolean({ description: 'Whether the boot before ended in order.' }),
          backAfterSeconds: Type.Optional(
            Type.Integer({
              description: 'From the stop to the start of edgehostd; absent where it is not known.',
            }),
          ),
        },
        { description: 'The present boot; absent where edgehostd has seen no boot before it.' },
      ),
    ),
  },
  { title: 'HostActions' },
)
export type HostActions = Static<typeof HostActions>

/** The configuration of the daemon; the package brings it, and an administrator may edit it. */
export const mainConfiguration = '/etc/edgehostd/config.yaml'

/** The same as the package has it. */
export const packagedConfiguration = '/usr/lib/edgehostd/config.yaml'

/** Where an administrator has more of it. */
export const configurationFolder = '/etc/edgehostd/config.d'

/** What more a reset may remove. */
export const wipeParts = ['network', 'configuration', 'identity'] as const
export type WipePart = (typeof wipeParts)[number]

/** The query of a reset. Another name is refused: with `dryrun` the host would be reset. */
export const ResetQuery = Type.Object(
  {
    dryRun: Type.Optional(
      Type.Boolean({ default: false, description: 'Only say what would go; nothing is changed.' }),
    ),
    force: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Also while the host is busy, or is linked to a platform.',
      }),
    ),
    keep: Type.Optional(Type.Enum(['content'], { description: 'What stays: the content.' })),
    wipe: Type.Optional(
      Type.String({
        pattern: '^(network|configuration|identity)(,(network|configuration|identity))*$',
        accepts: 'network, configuration, identity, or several of them with commas',
        description:
          'What goes too: configuration (the files in /etc/edgehostd/config.d; config.yaml is as the package has it again), identity (the key pairs of this host, its certificate and its registration; its id is chosen anew from its sources), network (the bonds, bridges and VLANs that edgehostd has made, and its files for links of systemd-networkd; files of netplan, NetworkManager and ifupdown are as they were found, unless others have changed them since).',
      }),
    ),
  },
  { additionalProperties: false },
)
export type ResetQuery = Static<typeof ResetQuery>

/** The body of a reset. */
export const ResetBody = Type.Object(
  {
    hostName: Type.Optional(
      Type.String({ description: 'The name of this host, so that no other is reset; a dry run needs none.' }),
    ),
  },
  { title: 'HostReset' },
)

/** What a reset removes. */
export const ResetPlan = Type.Object(
  {
    hostName: text('The name that the body has to have.'),
    removes: Type.Array(
      Type.Object({
        phase: text('cluster, definitions, content, configuration, sessions, identity, network.'),
        items: Type.Array(Type.String(), { description: 'What there is of it now; empty for nothing.' }),
      }),
      { description: 'In the order in which it goes.' },
    ),
    stays: Type.Array(Type.String()),
    problems: Type.Array(Type.String(), {
      description: 'Why it is refused without force; empty where it is not.',
    }),
  },
  { title: 'HostResetPlan' },
)
export type ResetPlan = Static<typeof ResetPlan>

/** The path of one stop. */
export const StopPath = Type.Object({ uid: Uid })
