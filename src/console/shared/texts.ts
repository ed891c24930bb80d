import { textIn } from './text.ts'

// Set by the build for each of the two: whose pages these are.
declare const __CONSOLE__: 'host' | 'platform'
/** The word for the program that answers; a constant of the build. */
const of = <Text>(words: Readonly<Record<typeof __CONSOLE__, Text>>): Text => words[__CONSOLE__]

const en = {
  menu: 'Pages',
  skip: 'Skip to the content',
  more: 'More',
  language: 'Language',
  logIn: 'Log in',
  logOut: 'Log out',
  user: of({ host: 'User name', platform: 'E-mail address' }),
  password: 'Password',
  newPassword: 'New password',
  setPassword: 'Set the new password',
  show: 'Show',
  hide: 'Hide',
  loggingIn: 'Checking…',
  wrongLogin: of({
    host: 'User name or password is wrong, or the account is locked.',
    platform: 'E-mail address or password is wrong, or no password is set yet.',
  }),
  wait: (seconds: number) => `Too many failed logins. The next try is possible in ${seconds} s.`,
  expired: 'Your password has expired. Choose a new one.',
  roles: { admin: 'Administrator', operator: 'Operator', viewer: 'Viewer' } as Readonly<
    Record<string, string>
  >,
  unreachable: of({ host: 'The host does not answer', platform: 'The platform does not answer' }),
  unreachableLong: (at: string) =>
    `Last answer at ${at}. What you see is from then. It is tried again by itself.`,
  sessionEnded: 'Your session has ended',
  sessionEndedLong: 'Log in again to go on; the page stays as it is.',
  sessionEnds: (seconds: number) => `Your session ends in ${seconds} s, since the page is not used.`,
  stay: 'Stay logged in',
  newVersion: of({
    host: 'The host has a new version of this page.',
    platform: 'The platform has a new version of this page.',
  }),
  reload: 'Load it',
  loading: 'Loading',
  failed: 'This could not be loaded',
  notDone: 'This was not done',
  again: 'Try again',
  reference: 'Reference',
  sameCommand: 'On the command line',
  copy: 'Copy',
  copied: 'Copied',
  cancel: 'Cancel',
  close: 'Close',
  showMore: (left: number) => `Show more (${left} left)`,
  typeName: (name: string) => `Type ${name} to confirm`,
  adminOnly: 'Only administrators can do this.',
  operatorOnly: 'Only operators and administrators can do this.',
  rows: (first: number, last: number, all: number) => `${first} to ${last} of ${all}`,
  previous: 'Previous',
  next: 'Next',
  machine: {
    used: (share: string) => `${share} used`,
    freeOf: (free: string, total: string) => `${free} free of ${total}`,
    network: 'Network',
    link: 'Link',
    address: 'Address',
    noAddress: 'no address',
    gateway: 'Gateway',
    defaultRoute: 'default route',
  },
}

export type SharedText = typeof en

const de: SharedText = {
  menu: 'Seiten',
  skip: 'Zum Inhalt springen',
  more: 'Mehr',
  language: 'Sprache',
  logIn: 'Anmelden',
  logOut: 'Abmelden',
  user: of({ host: 'Benutzername', platform: 'E-Mail-Adresse' }),
  password: 'Kennwort',
  newPassword: 'Neues Kennwort',
  setPassword: 'Neues Kennwort setzen',
  show: 'Zeigen',
  hide: 'Verbergen',
  loggingIn: 'Wird geprüft …',
  wrongLogin: of({
    host: 'Benutzername oder Kennwort ist falsch, oder das Konto ist gesperrt.',
    platform: 'E-Mail-Adresse oder Kennwort ist falsch, oder es ist noch kein Kennwort gesetzt.',
  }),
  wait: (seconds) => `Zu viele Fehlversuche. Der nächste Versuch ist in ${seconds} s möglich.`,
  expired: 'Ihr Kennwort ist abgelaufen. Wählen Sie ein neues.',
  roles: { admin: 'Administrator', operator: 'Bediener', viewer: 'Betrachter' },
  unreachable: of({ host: 'Das Gerät antwortet nicht', platform: 'Die Plattform antwortet nicht' }),
  unreachableLong: (at) =>
    `Letzte Antwort um ${at}. Was Sie sehen, ist von da. Es wird von selbst wieder versucht.`,
  sessionEnded: 'Ihre Sitzung ist zu Ende',
  sessionEndedLong: 'Melden Sie sich wieder an, um weiterzuarbeiten; die Seite bleibt, wie sie ist.',
  sessionEnds: (seconds) => `Ihre Sitzung endet in ${seconds} s, weil die Seite nicht benutzt wird.`,
  stay: 'Angemeldet bleiben',
  newVersion: of({
    host: 'Das Gerät hat eine neue Fassung dieser Seite.',
    platform: 'Die Plattform hat eine neue Fassung dieser Seite.',
  }),
  reload: 'Laden',
  loading: 'Wird geladen',
  failed: 'Das konnte nicht geladen werden',
  notDone: 'Das ist nicht geschehen',
  again: 'Noch einmal versuchen',
  reference: 'Referenz',
  sameCommand: 'Auf der Befehlszeile',
  copy: 'Kopieren',
  copied: 'Kopiert',
  cancel: 'Abbrechen',
  close: 'Schließen',
  showMore: (left) => `Mehr zeigen (noch ${left})`,
  typeName: (name) => `Zum Bestätigen ${name} eingeben`,
  adminOnly: 'Das können nur Administratoren.',
  operatorOnly: 'Das können nur Bediener und Administratoren.',
  rows: (first, last, all) => `${first} bis ${last} von ${all}`,
  previous: 'Zurück',
  next: 'Weiter',
  machine: {
    used: (share) => `${share} belegt`,
    freeOf: (free, total) => `${free} frei von ${total}`,
    network: 'Netzwerk',
    link: 'Schnittstelle',
    address: 'Adresse',
    noAddress: 'keine Adresse',
    gateway: 'Gateway',
    defaultRoute: 'Standardroute',
  },
}

/** The texts of the parts that the pages of both programs share. */
export const sharedText = textIn<SharedText>({ en, de })
