import { Type, type Static } from 'typebox'
import { absolutePath, positive, strict } from '../config/schema-parts.ts'
import { Guard } from '../credentials/config.ts'

/** The settings of groups, PAM, guess protection and tokens. */
export const Auth = Type.Object(
  {
    adminGroups: Type.Array(Type.String({ minLength: 1 }), {
      default: ['sudo', 'wheel', 'edgehostd-admin'],
      description: 'Members of these groups, and uid 0, are administrators; other accounts may read.',
    }),
    allowAnyShell: Type.Boolean({
      default: false,
      description: 'Allow accounts whose shell is not in /etc/shells.',
    }),
    refusalDelayMs: Type.Integer({
      minimum: 0,
      maximum: 60_000,
      default: 3_000,
      description: 'Every refused login is answered this long after it arrived.',
    }),
    pam: Type.Object(
      {
        service: Type.String({
          pattern: '^[a-z][a-z0-9-]{0,62}$',
          accepts: '1 to 63 lower-case letters, digits and dashes, the first a letter',
          default: 'edgehostd',
          description: 'Name of the file in /etc/pam.d.',
        }),
        program: Type.String({
          ...absolutePath,
          default: '/usr/lib/edgehostd/pamtester',
          description: 'The pamtester to run.',
        }),
        timeoutMs: positive(20_000, 600_000, 'A PAM child that takes longer is killed.'),
        maximumChildren: positive(
          32,
          1_000,
          'Maximum number of PAM children, including sleeping ones; the same number again for users who have logged in from the same client before.',
        ),
        queueLength: Type.Integer({
          minimum: 0,
          maximum: 10_000,
          default: 16,
          description:
            'Logins that wait for a free child; clients take turns. Beyond this number, a login of the client with the most waiting logins is refused.',
        }),
      },
      strict,
    ),
    guard: Guard,
    tokens: Type.Object(
      {
        accessMinutes: positive(15, 1_440, 'Life of an access token.'),
        renewalHours: positive(2, 168, 'A renewal extends the session by this.'),
        extendedRenewalHours: positive(
          24,
          168,
          'A renewal extends the session by this with extendedSession=true.',
        ),
        maximumDays: positive(7, 365, 'Maximum life of a session.'),
        replaySeconds: positive(30, 600, 'The same old refresh token gets the same reply for this long.'),
      },
      strict,
    ),
  },
  strict,
)

/** The settings of logins; the section `auth`. */
export type AuthSettings = Static<typeof Auth>
